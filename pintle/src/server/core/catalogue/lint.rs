use std::collections::BTreeSet;

use pintle_types::{
    JsonObject,
    schema::{Prompt, Resource, ResourceTemplate},
};
use serde_json::Value;

use super::Catalogue;
use crate::ToolTraits;

/// Returns warnings about valid registrations that could be better.
pub(crate) fn lint(catalogue: &Catalogue) -> Vec<String> {
    let mut warnings = Vec::new();
    for route in catalogue.tools.iter() {
        let (tool, name) = (&route.tool, &route.tool.name);
        if is_blank(tool.description.as_deref()) {
            warnings.push(format!(
                "the tool `{name}` has no description: describe what it does, the model relies on it"
            ));
        }
        let undescribed: Vec<_> = undescribed(&tool.input_schema).map(|it| format!("`{it}`")).collect();
        if let [first, others @ ..] = &undescribed[..] {
            let (them, have) = match others {
                [] => (format!("argument {first}"), "has"),
                _ => (format!("arguments {}", undescribed.join(", ")), "have"),
            };
            warnings.push(format!(
                "the {them} of the tool `{name}` {have} no description: describe what to enter"
            ));
        }
        let traits = ToolTraits::of(tool);
        let mut seen = BTreeSet::new();
        for tag in traits.tags.iter().filter(|tag| !seen.insert(*tag)) {
            warnings.push(format!("the tool `{name}` has the tag `{tag}` twice: once will do"));
        }
        for dependency in &traits.dependencies {
            if dependency == name {
                warnings.push(format!("the tool `{name}` depends on itself: it can never be called"));
            } else if catalogue.tools.get(dependency).is_none() {
                warnings
                    .push(format!("the tool `{name}` depends on `{dependency}`, which is not there: add it"));
            }
        }
        let hints = tool.annotations.as_ref();
        if hints
            .is_some_and(|hints| hints.read_only_hint == Some(true) && hints.idempotent_hint == Some(false))
        {
            warnings.push(format!(
                "the tool `{name}` only reads, so `idempotent_hint = false` has no effect: remove it"
            ));
        }
    }
    for prompt in catalogue.prompts.iter() {
        let Prompt { name, description, arguments, .. } = &prompt.prompt;
        if is_blank(description.as_deref()) {
            warnings.push(format!("the prompt `{name}` has no description: describe what it is for"));
        }
        for argument in arguments.iter().flatten().filter(|it| is_blank(it.description.as_deref())) {
            let argument = &argument.name;
            warnings.push(format!(
                "the argument `{argument}` of the prompt `{name}` has no description: describe what to enter"
            ));
        }
        for argument in prompt.allowed.keys() {
            if !prompt.prompt.arguments.iter().flatten().any(|known| known.name == *argument) {
                let name = &prompt.prompt.name;
                warnings.push(format!(
                    "the prompt `{name}` has values for `{argument}`, which is not one of its arguments"
                ));
            }
        }
    }
    for Resource { uri, description, .. } in catalogue.resources.iter().map(|route| &route.resource) {
        if is_blank(description.as_deref()) {
            warnings.push(format!("the resource `{uri}` has no description: describe its contents"));
        }
    }
    for route in catalogue.templates.iter() {
        let ResourceTemplate { uri_template, description, .. } = &route.resource_template;
        if is_blank(description.as_deref()) {
            warnings.push(format!(
                "the resource template `{uri_template}` has no description: describe its contents"
            ));
        }
    }
    warnings
}

/// Returns the arguments of a tool that neither their schema nor the definition that it refers to describes.
fn undescribed(schema: &JsonObject) -> impl Iterator<Item = &String> {
    let text = |schema: &Value| schema.get("description").and_then(Value::as_str).map(str::to_owned);
    let described = move |property: &Value| {
        let definition =
            property.get("$ref").and_then(Value::as_str).and_then(|link| link.strip_prefix("#/$defs/"));
        let definition = definition.and_then(|name| schema.get("$defs")?.get(name));
        text(property).or_else(|| definition.and_then(text))
    };
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    properties
        .filter(move |(_, property)| property.is_object() && is_blank(described(property).as_deref()))
        .map(|(name, _)| name)
}

fn is_blank(text: Option<&str>) -> bool {
    text.is_none_or(|text| text.trim().is_empty())
}
