//! Operations that are read as resources: their URIs, and the arguments that a URI stands for.

use std::collections::HashMap;

use http::Method;
use pintle::{
    server::{ProvidedEntry, Target},
    types::{
        JsonObject,
        schema::{Resource, ResourceTemplate, Tool},
    },
    uri::{Template, TemplateIndex, Uri},
};
use serde_json::Value;

use crate::{
    operation::{Piece, Place},
    tool::ApiTool,
};

/// The schemes that have a meaning elsewhere.
const KNOWN_SCHEMES: &[&str] =
    &["blob", "data", "file", "ftp", "http", "https", "skill", "ui", "urn", "ws", "wss"];
/// The limit of a scheme, in bytes.
const MAX_SCHEME: usize = 64;

/// An operation that is read.
#[derive(Debug)]
struct ReadOperation {
    tool: ApiTool,
    /// The arguments of the variables of its template.
    arguments: HashMap<String, String>,
}

/// The resources of an API.
#[derive(Debug)]
pub(crate) struct ApiResources {
    operations: Vec<ReadOperation>,
    pub(crate) resources: Vec<Resource>,
    pub(crate) templates: Vec<ResourceTemplate>,
    /// The numbers of the operations and their URIs, by the keys of these.
    by_uri: HashMap<String, (usize, String)>,
    by_template: TemplateIndex<usize>,
    /// The entries of what is listed, by URIs and templates.
    entries: HashMap<String, ProvidedEntry>,
}

/// Returns the scheme of the URIs of an API of this name.
pub(crate) fn scheme(name: &str) -> String {
    let allowed =
        |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    let words: String = name.chars().map(allowed).take(MAX_SCHEME).collect();
    let words: Vec<_> = words.split('-').filter(|word| !word.is_empty()).collect();
    let scheme = words.join("-");
    let is_free = scheme.starts_with(|first: char| first.is_ascii_alphabetic());
    match is_free && !KNOWN_SCHEMES.contains(&scheme.as_str()) {
        true => scheme,
        false => format!("api-{scheme}").trim_end_matches('-').to_owned(),
    }
}

impl ApiResources {
    /// Takes the tools that can be read. The others are returned with the reasons.
    pub(crate) fn new(scheme: &str, tools: Vec<ApiTool>) -> (Self, Vec<(ApiTool, String)>) {
        let mut found = Self {
            operations: Vec::new(),
            resources: Vec::new(),
            templates: Vec::new(),
            by_uri: HashMap::new(),
            by_template: TemplateIndex::new([]),
            entries: HashMap::new(),
        };
        let (mut templates, mut others) = (Vec::new(), Vec::new());
        for tool in tools {
            match uri_template(scheme, &tool) {
                Ok((uri, template, arguments)) => {
                    let number = found.operations.len();
                    let Tool { name, title, description, .. } = &tool.tool;
                    if let Some(uri) = uri {
                        let mut resource = Resource::new(&*uri, name);
                        (resource.title, resource.description) = (title.clone(), description.clone());
                        found.by_uri.insert(Uri::of(&uri).key().into_owned(), (number, uri.clone()));
                        found.entries.insert(uri, resource.clone().into());
                        found.resources.push(resource);
                    }
                    if let Some(template) = template {
                        let mut listed = ResourceTemplate::new(template.as_str(), name);
                        (listed.title, listed.description) = (title.clone(), description.clone());
                        found.entries.insert(template.as_str().to_owned(), listed.clone().into());
                        found.templates.push(listed);
                        templates.push((template, number));
                    }
                    found.operations.push(ReadOperation { tool, arguments });
                }
                Err(reason) => others.push((tool, reason)),
            }
        }
        found.by_template = TemplateIndex::new(templates);
        (found, others)
    }

    /// Returns the entry that a request names. That of a URI of a template is the template.
    pub(crate) fn find(&self, target: &Target<'_>) -> Option<ProvidedEntry> {
        let listed = match target {
            Target::Template(template) => template,
            Target::Resource(uri) => {
                let uri = Uri::of(uri);
                match self.by_uri.get(&*uri.key()) {
                    Some((_, listed)) => listed,
                    None => self.by_template.get(&uri)?.template.as_str(),
                }
            }
            _ => return None,
        };
        self.entries.get(listed).cloned()
    }

    /// Returns the operation that a URI reads, and its arguments.
    pub(crate) fn operation(&self, uri: &str) -> Option<(&ApiTool, JsonObject)> {
        let uri = Uri::of(uri);
        if let Some((number, _)) = self.by_uri.get(&*uri.key()) {
            return Some((&self.operations.get(*number)?.tool, JsonObject::new()));
        }
        let found = self.by_template.get(&uri)?;
        let ReadOperation { tool, arguments } = self.operations.get(*found.value)?;
        let given = found.vars.iter().filter_map(|(variable, text)| {
            let argument = arguments.get(variable)?;
            // What is no value of the argument is refused as one.
            Some((argument.clone(), tool.value(argument, text).unwrap_or_else(|| text.into())))
        });
        Some((tool, given.collect()))
    }
}

/// The URI of an operation, if there is one without arguments, its template, if it has any, and the arguments of that.
type OperationUris = (Option<String>, Option<Template>, HashMap<String, String>);

/// Returns the URIs of an operation. The path is behind an empty authority, in which case would not matter.
fn uri_template(scheme: &str, tool: &ApiTool) -> Result<OperationUris, String> {
    let plan = &tool.plan;
    if plan.method != Method::GET {
        return Err("only `GET` is read".to_owned());
    }
    let mut arguments = HashMap::new();
    let mut template = format!("{scheme}://");
    let mut variable = |name: &str, argument: &str| {
        let allowed = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
        let mut variable: String = name.chars().map(allowed).collect();
        while arguments.contains_key(&variable) {
            variable.push('_');
        }
        arguments.insert(variable.clone(), argument.to_owned());
        variable
    };
    for piece in &plan.path.pieces {
        match piece {
            Piece::Text(text) => template += text,
            Piece::Parameter(name) => {
                let is_it = |place: Place, other: &str| place == Place::Path && other == name;
                let parameter = plan.parameters.iter().find(|one| is_it(one.place, &one.name));
                let argument = parameter.map_or(name.as_str(), |one| &one.argument);
                template += &format!("{{{}}}", variable(name, argument));
            }
        }
    }
    let has_path = template.contains('{');
    let required = tool.tool.input_schema.get("required").and_then(Value::as_array);
    let is_required =
        |argument: &str| required.is_some_and(|names| names.iter().any(|name| name == argument));
    let (mut query, mut needs_query) = (Vec::new(), false);
    for parameter in plan.parameters.iter().filter(|parameter| parameter.place != Place::Path) {
        let (argument, is_required) = (&parameter.argument, is_required(&parameter.argument));
        if parameter.place == Place::Query && tool.is_scalar(argument) {
            query.push(variable(&parameter.name, argument));
            needs_query |= is_required;
        } else if is_required {
            return Err(format!("no URI can have `{argument}`"));
        }
    }
    if plan.body.is_some() {
        return Err("its requests have a body".to_owned());
    }
    let uri = (!has_path && !needs_query).then(|| template.clone());
    if !query.is_empty() {
        template += &format!("{{?{}}}", query.join(","));
    }
    if arguments.is_empty() {
        return Ok((uri, None, arguments));
    }
    let parsed =
        Template::parse(&template).map_err(|error| format!("`{template}` is no template: {error}"))?;
    Ok((uri, Some(parsed), arguments))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_has_a_scheme() {
        for (name, wanted) in [
            ("pets", "pets"),
            ("Swagger Petstore - OpenAPI 3.0", "swagger-petstore-openapi-3-0"),
            ("3d", "api-3d"),
            ("HTTPS", "api-https"),
            ("é", "api"),
        ] {
            assert_eq!(scheme(name), wanted);
        }
    }
}
