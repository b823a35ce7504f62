use std::collections::HashSet;

use pintle::{
    schema::Schema,
    types::{JsonObject, schema::Tool},
};
use pintle_host::{
    Naming,
    model::{ModelApi, ModelTools},
};
use serde_json::Value;

use super::{
    super::catalogue::ServerCatalogue,
    finding::{Finding, Level},
};
use crate::output::hides;

/// The maximum length of a name (SEP-986).
const MAX_NAME: usize = 128;
/// The maximum length of a description that OpenAI takes.
const MAX_DESCRIPTION: usize = 1024;
/// A definition of more tokens is large.
const LARGE_TOOL: usize = 1500;
/// A list of more tokens is large.
const LARGE_LIST: usize = 15_000;
/// The depth to which schemas are looked at.
const MAX_DEPTH: usize = 32;
/// Keywords that model APIs do not take.
const NOT_PORTABLE: &[&str] = &[
    "$dynamicRef",
    "contains",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "if",
    "not",
    "patternProperties",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Estimates the tokens of a text: a quarter of its bytes.
pub(super) fn tokens(bytes: usize) -> usize {
    bytes.div_ceil(4)
}

/// Returns the bytes of the definition of a tool.
pub(super) fn size(tool: &Tool) -> usize {
    serde_json::to_string(tool).map_or(0, |text| text.len())
}

/// Applies all rules.
pub(super) fn apply(catalogue: &ServerCatalogue) -> Vec<Finding> {
    let mut findings = Findings::default();
    let mut names = HashSet::new();
    for tool in &catalogue.tools {
        findings.subject = format!("tool {}", tool.name);
        if !names.insert(&tool.name) {
            findings.error("duplicate-name", "two tools have this name: a client sees one of them");
        }
        findings.tool(tool);
    }
    let total = tokens(catalogue.tools.iter().map(size).sum());
    if total > LARGE_LIST {
        findings.subject = "tools".to_owned();
        findings.warning("large-list", format!("the list has about {total} tokens (an estimate), which every conversation pays for: offer fewer tools, or shorter descriptions"));
    }
    for prompt in &catalogue.prompts {
        findings.subject = format!("prompt {}", prompt.name);
        findings.described(prompt.description.as_deref());
        for argument in prompt.arguments.iter().flatten() {
            if is_blank(argument.description.as_deref()) {
                findings.note(
                    "argument-description",
                    format!("the argument `{}` has no description", argument.name),
                );
            }
        }
    }
    for resource in &catalogue.resources {
        findings.subject = format!("resource {}", resource.uri);
        findings.described(resource.description.as_deref());
    }
    for template in &catalogue.templates {
        findings.subject = format!("template {}", template.uri_template);
        findings.described(template.description.as_deref());
    }
    findings.all
}

#[derive(Default)]
struct Findings {
    all: Vec<Finding>,
    subject: String,
}

impl Findings {
    fn add(&mut self, rule: &'static str, level: Level, message: impl Into<String>) {
        self.all.push(Finding { rule, level, subject: self.subject.clone(), message: message.into() });
    }

    fn error(&mut self, rule: &'static str, message: impl Into<String>) {
        self.add(rule, Level::Error, message);
    }

    fn warning(&mut self, rule: &'static str, message: impl Into<String>) {
        self.add(rule, Level::Warning, message);
    }

    fn note(&mut self, rule: &'static str, message: impl Into<String>) {
        self.add(rule, Level::Note, message);
    }

    fn tool(&mut self, tool: &Tool) {
        self.name(&tool.name);
        self.described(tool.description.as_deref());
        self.hints(tool);
        self.schema("inputSchema", &tool.input_schema);
        if let Some(schema) = &tool.output_schema {
            self.schema("outputSchema", schema);
        }
        self.portable(tool);
        let tokens = tokens(size(tool));
        if tokens > LARGE_TOOL {
            self.warning(
                "large-tool",
                format!("the definition has about {tokens} tokens (an estimate): shorten it"),
            );
        }
    }

    fn name(&mut self, name: &str) {
        let allowed = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(allowed) {
            self.error("name", "a name has 1 to 128 letters, digits, `_`, `-` and `.`");
        } else if let Some(Some(other)) = Naming::unprefixed().names(&[("", name)]).into_iter().next()
            && other != name
        {
            self.note("name-portability", format!("some model APIs do not take the name, and get `{other}`"));
        }
    }

    fn described(&mut self, description: Option<&str>) {
        if is_blank(description) {
            return self.warning(
                "description",
                "there is no description: describe what it is for, the model relies on it",
            );
        }
        let description = description.unwrap_or_default();
        if description.chars().count() > MAX_DESCRIPTION {
            self.warning(
                "long-description",
                format!("the description has more than {MAX_DESCRIPTION} characters: OpenAI takes no more"),
            );
        }
        if hides(&description.replace(['\n', '\t'], " ")) {
            self.error("hidden-text", "the description has control or invisible characters, which a user does not see and a model reads");
        }
    }

    fn hints(&mut self, tool: &Tool) {
        let Some(hints) = tool.annotations.as_ref() else {
            return self.note("hints", "there are no hints: clients assume that the tool is destructive");
        };
        if hints.read_only_hint == Some(true) && hints.destructive_hint == Some(true) {
            self.error("hints", "the tool is read-only and destructive: it cannot be both");
        }
        if hints.read_only_hint == Some(true) && hints.idempotent_hint == Some(false) {
            self.warning(
                "hints",
                "the tool is marked read-only and not idempotent: a tool that only reads can be repeated",
            );
        }
    }

    fn schema(&mut self, member: &str, schema: &JsonObject) {
        if schema.get("type").is_none_or(|kind| kind != "object") {
            self.error("schema-type", format!("the type of `{member}` is not `object`"));
        }
        if let Err(error) = Schema::compile(&Value::Object(schema.clone())) {
            self.error("schema", format!("`{member}` is invalid: {error}"));
        }
    }

    /// Looks for what model APIs do not take.
    fn portable(&mut self, tool: &Tool) {
        let schema = Value::Object((*tool.input_schema).clone());
        let top = ["anyOf", "oneOf", "allOf"].into_iter().find(|keyword| schema.get(keyword).is_some());
        if let Some(keyword) = top {
            self.warning("schema-portability", format!("`{keyword}` at the top of `inputSchema` is refused by some model APIs: describe the alternatives in properties"));
        }
        let mut keywords = Vec::new();
        collect(&schema, MAX_DEPTH, &mut keywords);
        if !keywords.is_empty() {
            let keywords: Vec<_> = keywords.iter().map(|keyword| format!("`{keyword}`")).collect();
            self.note(
                "schema-portability",
                format!("model APIs do not take {}: a model does not know this limit", keywords.join(", ")),
            );
        }
        let strict = ModelTools::new(ModelApi::OpenAiChat, [tool]).strict(true).to_json();
        if strict[0]["function"]["strict"] == false {
            self.note(
                "strict",
                "the schema does not fit the strict mode of OpenAI: an object accepts any member",
            );
        }
        let properties = schema["properties"].as_object().into_iter().flatten();
        for (name, _) in properties.filter(|(_, property)| {
            property.is_object()
                && is_blank(property["description"].as_str())
                && property.get("$ref").is_none()
        }) {
            self.note("argument-description", format!("the argument `{name}` has no description"));
        }
    }
}

/// Collects the keywords of a schema that are not portable, each once.
fn collect(schema: &Value, depth: usize, found: &mut Vec<&'static str>) {
    let Some(members) = schema.as_object().filter(|_| depth > 0) else {
        if let (Some(items), true) = (schema.as_array(), depth > 0) {
            items.iter().for_each(|item| collect(item, depth - 1, found));
        }
        return;
    };
    for (name, value) in members {
        if let Some(keyword) = NOT_PORTABLE.iter().find(|keyword| *keyword == name)
            && !found.contains(keyword)
        {
            found.push(keyword);
        }
        match name.as_str() {
            // Their members are names, not keywords.
            "properties" | "$defs" | "definitions" => {
                value
                    .as_object()
                    .into_iter()
                    .flatten()
                    .for_each(|(_, inner)| collect(inner, depth - 1, found));
            }
            "enum" | "const" | "default" | "examples" => {}
            _ => collect(value, depth - 1, found),
        }
    }
}

fn is_blank(text: Option<&str>) -> bool {
    text.is_none_or(|text| text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rules(tool: &Value) -> Vec<String> {
        let tool: Tool = serde_json::from_value(tool.clone()).unwrap();
        let catalogue = ServerCatalogue { tools: vec![tool], ..ServerCatalogue::default() };
        apply(&catalogue)
            .into_iter()
            .map(|finding| format!("{} {}", finding.level.name(), finding.rule))
            .collect()
    }

    #[test]
    fn a_good_tool_has_no_findings() {
        let tool = json!({"name": "tide", "description": "The tide.", "annotations": {"readOnlyHint": true}, "inputSchema":
            {"type": "object", "properties": {"hour": {"type": "integer", "description": "The hour."}}, "required": ["hour"], "additionalProperties": false}});
        assert_eq!(rules(&tool), Vec::<String>::new());
    }

    #[test]
    fn each_rule_finds_its_fault() {
        let good = json!({"name": "tide", "description": "d", "annotations": {"readOnlyHint": true}, "inputSchema": {"type": "object", "properties": {}, "additionalProperties": false}});
        for (member, value, rule) in [
            ("name", json!("a b"), "error name"),
            ("name", json!("a.b"), "note name-portability"),
            ("description", json!(""), "warning description"),
            ("description", json!("x".repeat(1025)), "warning long-description"),
            ("description", json!("x\u{200b}"), "error hidden-text"),
            ("description", json!("x".repeat(7000)), "warning large-tool"),
            ("annotations", json!(null), "note hints"),
            ("annotations", json!({"readOnlyHint": true, "destructiveHint": true}), "error hints"),
            ("inputSchema", json!({"type": "string"}), "error schema-type"),
            ("inputSchema", json!({"type": "object", "properties": {"a": {"type": "text"}}}), "error schema"),
            ("inputSchema", json!({"type": "object", "oneOf": []}), "warning schema-portability"),
            (
                "inputSchema",
                json!({"type": "object", "properties": {"a": {"description": "d", "not": {}}}}),
                "note schema-portability",
            ),
            (
                "inputSchema",
                json!({"type": "object", "properties": {"a": {"type": "string"}}}),
                "note argument-description",
            ),
            ("outputSchema", json!({"type": "array"}), "error schema-type"),
        ] {
            let mut tool = good.clone();
            tool[member] = value;
            assert!(rules(&tool).contains(&rule.to_owned()), "{rule}: {:?}", rules(&tool));
        }
        // The name of a property is not a keyword.
        let mut tool = good;
        tool["inputSchema"]["properties"] = json!({"not": {"type": "string", "description": "d"}});
        assert!(!rules(&tool).contains(&"note schema-portability".to_owned()));
    }
}
