use pintle_types::schema::ResourceTemplate;

use super::{
    completion::Completers,
    options::{RouteOptions, completion_methods, content_methods, route_methods},
    resource::reader,
    texts::Texts,
};
use crate::{
    server::{Description, Handler, IntoResourceResult, core::handler::extract::HandlerKind},
    uri::Template,
};

/// A resource template and its handler, to be added to a server.
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
    pub(crate) resource_template: ResourceTemplate,
    /// The parsed URI template; `None` if it is invalid, which is a fault.
    pub(crate) template: Option<Template>,
    pub(crate) options: RouteOptions,
    pub(crate) completers: Completers,
    /// The types of the variables.
    pub(crate) texts: Texts,
}

/// Creates a resource template from an async function, which takes the variables as [`Vars`](crate::server::Vars). A path that
/// leaves its parent with `..` never matches.
pub fn template<M: 'static, H>(
    uri_template: impl Into<String>,
    name: impl Into<String>,
    handler: H,
) -> TemplateRoute
where
    H: Handler<M, Output: IntoResourceResult>,
{
    TemplateRoute::of(ResourceTemplate::new(uri_template, name), handler)
}

impl TemplateRoute {
    /// Creates a resource template from its definition: clients see every member of it as it is.
    ///
    /// The handler takes the variables as text ([`uri::Vars`](crate::uri::Vars)) or decodes them ([`Vars`](crate::server::Vars)); its
    /// types do not change the definition. A handler that returns an [`Outcome`](crate::server::Outcome) decides the answer as
    /// a whole.
    ///
    /// ```
    /// use pintle::{server::{TemplateRoute, Vars}, types::schema::ResourceTemplate};
    ///
    /// let note: ResourceTemplate = serde_json::from_str(r#"{"uriTemplate": "note://{id}", "name": "note"}"#)?;
    /// let note = TemplateRoute::of(note, |Vars(id): Vars<u32>| async move { format!("Note {id}") });
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn of<M: 'static, H>(resource_template: ResourceTemplate, handler: H) -> Self
    where
        H: Handler<M, Output: IntoResourceResult>,
    {
        let text = &resource_template.uri_template;
        let mut description = Description::new(HandlerKind::Template, text);
        H::describe(&mut description);
        let Description { input, mut faults, needs, .. } = description;
        let texts = Texts::of(HandlerKind::Template, text, input, &mut faults);
        let template = match Template::parse(text) {
            Ok(template) => {
                let known: Vec<_> = template.names().collect();
                let unknown = texts
                    .properties()
                    .filter(|(name, _)| texts.requires(name) && !known.contains(&name.as_str()));
                faults.extend(unknown.map(|(name, _)| {
                    format!(
                        "the handler of `{text}` takes `{name}`, which is not one of its variables: `{}`",
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
        let options = RouteOptions::new(reader(handler), faults, needs);
        Self { resource_template, template, options, completers, texts }
    }
}

route_methods!(
    TemplateRoute, Template, resource_template.uri_template: ResourceTemplate, Resources, templates,
    prepare: TemplateRoute::prepare
);
completion_methods!(TemplateRoute, resource_template.uri_template, "variable");
content_methods!(TemplateRoute, resource_template);

impl TemplateRoute {
    /// Records a fault if the name is empty.
    fn prepare(&mut self) {
        let ResourceTemplate { uri_template, name, .. } = &self.resource_template;
        if name.trim().is_empty() {
            let fault = format!("the name of the resource template `{uri_template}` is empty: give it one");
            self.options.faults.push(fault);
        }
    }
}
