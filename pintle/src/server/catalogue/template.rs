use std::{fmt, future::Future};

use pintle_types::schema::ResourceTemplate;

use super::{
    builder::{route_builder, route_completion, route_contents},
    completion::{Completers, IntoValues},
    resource::reader,
    texts::Texts,
};
use crate::{
    server::{
        Description, Handler, IntoResourceResult, Next,
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

route_builder!(TemplateRoute, described, uri_template, "resource template");
route_completion!(TemplateRoute, "variable");
route_contents!(TemplateRoute, described);

impl fmt::Debug for TemplateRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TemplateRoute").field("template", &self.described).finish_non_exhaustive()
    }
}
