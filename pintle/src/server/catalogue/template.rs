use std::{fmt, future::Future};

use pintle_proto::server::CacheHint;
use pintle_types::{
    Meta,
    schema::{Annotations, Icon, ResourceTemplate},
};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::{
    completion::{Completers, IntoValues},
    resource::reader,
    texts::Texts,
};
use crate::{
    server::{
        Description, Form, Handler, IntoResourceResult, Next,
        access::required::Required,
        handler::extract::{Kind, Need},
    },
    uri::Template,
};

/// A family of resources and the function that reads them, not yet part of a server.
///
/// ```
/// use pintle::server::{Vars, template};
///
/// let notes = template("note://{title}", "note", |Vars(title): Vars<String>| async move {
///     format!("This is {title}.")
/// });
/// ```
#[derive(Clone)]
pub struct TemplateRoute {
    pub(crate) described: ResourceTemplate,
    /// `None` if it could not be read, which is a fault.
    pub(crate) template: Option<Template>,
    pub(crate) next: Next,
    pub(crate) completers: Completers,
    /// What the handler takes the variables for.
    pub(crate) texts: Texts,
    pub(crate) faults: Vec<String>,
    /// What a caller needs to get to them.
    pub(crate) required: Required,
    /// What the handler takes from the server.
    pub(crate) needs: Vec<Need>,
}

/// Makes a family of resources of an async function, which takes the variables as [`Vars`](crate::server::Vars). A path that would
/// climb out never matches.
pub fn template<M: 'static, H>(
    uri_template: impl Into<String>,
    name: impl Into<String>,
    handler: H,
) -> TemplateRoute
where
    H: Handler<M, Output: IntoResourceResult>,
{
    let text = uri_template.into();
    let mut description = Description::new(Kind::Template, &text);
    H::describe(&mut description);
    let Description { input, mut faults, needs, .. } = description;
    let texts = Texts::of(Kind::Template, &text, input, &mut faults);
    let template = match Template::parse(&text) {
        Ok(template) => {
            let known: Vec<_> = template.names().collect();
            let unknown = texts
                .properties()
                .filter(|(name, _)| texts.requires(name) && !known.contains(&name.as_str()));
            faults.extend(unknown.map(|(name, _)| {
                format!(
                    "the handler of `{text}` takes `{name}`, which is no variable of it: it has `{}`",
                    known.join("`, `")
                )
            }));
            Some(template)
        }
        Err(error) => {
            faults.push(format!("`{text}` is not a URI template: {error}"));
            None
        }
    };
    let mut completers = Completers::default();
    texts.complete(&mut completers);
    let described = ResourceTemplate::new(text, name);
    let (next, required) = (reader(handler), Required::default());
    TemplateRoute { described, template, next, completers, texts, faults, needs, required }
}

impl TemplateRoute {
    /// What a person sees instead of the name.
    #[must_use]
    pub fn title(mut self, text: impl Into<String>) -> Self {
        self.described.title = Some(text.into());
        self
    }

    /// What they are.
    #[must_use]
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.described.description = Some(text.into());
        self
    }

    /// Of what type their contents are.
    #[must_use]
    pub fn mime_type(mut self, mime: impl Into<String>) -> Self {
        self.described.mime_type = Some(mime.into());
        self
    }

    /// For whom they are, and how much they matter.
    #[must_use]
    pub fn annotations(mut self, annotations: Annotations) -> Self {
        self.described.annotations = Some(annotations);
        self
    }

    /// Checks when the server starts that a `T` can be asked for with [`elicit`](crate::server::Cx::elicit).
    #[must_use]
    pub fn asks<T: DeserializeOwned + JsonSchema>(mut self) -> Self {
        if let Err(error) = Form::of::<T>() {
            self.faults.push(format!(
                "the resource template `{}` asks for what it cannot: {error}",
                self.described.uri_template
            ));
        }
        self
    }

    /// Only for callers who have all of these rights: the scopes of their token, where the server is protected by OAuth.
    ///
    /// Over HTTP a caller who lacks one is answered with 403 before anything runs, and a client that can, asks its user for
    /// more. So is everybody if nothing [authenticates](crate::server::Authenticated), and whoever connects by TCP. The
    /// [local](crate::server::Principal::Local) user, at the other end of a pipe, has every right.
    #[must_use]
    pub fn requires<T: Into<String>>(mut self, rights: impl IntoIterator<Item = T>) -> Self {
        self.required.add(rights);
        self
    }

    /// Does not even exist for callers who lack what it [requires](Self::requires): it is in no list of theirs, and they
    /// cannot ask for more either.
    #[must_use]
    pub fn hidden(mut self) -> Self {
        self.required.hide();
        self
    }

    /// A picture of them.
    #[must_use]
    pub fn icon(mut self, icon: Icon) -> Self {
        self.described.icons.get_or_insert_default().push(icon);
        self
    }

    /// Anything else that clients may want to know.
    #[must_use]
    pub fn meta(mut self, meta: Meta) -> Self {
        self.described.meta = Some(meta);
        self
    }

    /// How long what was read may be kept, and by whom.
    #[must_use]
    pub fn cache(mut self, hint: CacheHint) -> Self {
        self.next = self.next.kept(hint);
        self
    }

    /// Completes the values of one variable.
    #[must_use]
    pub fn complete<F, Fut>(mut self, variable: impl Into<String>, completer: F) -> Self
    where
        F: Fn(crate::server::Partial) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoValues> + Send + 'static,
    {
        self.completers.add(variable.into(), completer);
        self
    }
}

impl fmt::Debug for TemplateRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TemplateRoute").field("template", &self.described).finish_non_exhaustive()
    }
}
