use std::{fmt, future::Future};

use pintle_proto::server::CacheHint;
use pintle_types::{
    Meta,
    schema::{Annotations, Icon, ResourceTemplate},
};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::{
    Cx, Form, Next, RequestError,
    completion::{Completers, IntoValues},
    resource::{IntoResourceResult, reader},
};
use crate::uri::{Template, Vars};

/// A family of resources and the function that reads them, not yet part of a server.
///
/// ```
/// use pintle::server::template;
///
/// let notes = template("note://{title}", "note", |_cx, vars| async move {
///     Ok(format!("This is {}.", vars.get("title").unwrap_or_default()))
/// });
/// ```
#[derive(Clone)]
pub struct TemplateRoute {
    pub(crate) described: ResourceTemplate,
    /// `None` if it could not be read, which is a fault.
    pub(crate) template: Option<Template>,
    pub(crate) next: Next,
    pub(crate) completers: Completers,
    pub(crate) faults: Vec<String>,
}

/// Makes a family of resources of an async function. Variables come decoded; a path that would climb out never matches.
pub fn template<F, Fut, R>(
    uri_template: impl Into<String>,
    name: impl Into<String>,
    handler: F,
) -> TemplateRoute
where
    F: Fn(Cx, Vars) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, RequestError>> + Send + 'static,
    R: IntoResourceResult,
{
    let text = uri_template.into();
    let mut faults = Vec::new();
    let template = match Template::parse(&text) {
        Ok(template) => Some(template),
        Err(error) => {
            faults.push(format!("`{text}` is not a URI template: {error}"));
            None
        }
    };
    let matcher = template.clone();
    let handler = std::sync::Arc::new(handler);
    let next = reader(Some(text.clone()), move |cx, uri| {
        let (vars, handler) = (matcher.as_ref().and_then(|template| template.matches(&uri)), handler.clone());
        async move {
            match vars {
                Some(vars) => handler(cx, vars).await,
                None => Err(RequestError::not_found()),
            }
        }
    });
    let described = ResourceTemplate::new(text, name);
    TemplateRoute { described, template, next, completers: Completers::default(), faults }
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

    /// Checks when the server starts that a `T` can be asked for with [`elicit`](super::Cx::elicit).
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
        F: Fn(super::Partial) -> Fut + Send + Sync + 'static,
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
