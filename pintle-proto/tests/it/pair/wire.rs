//! Every line of the whole script, held against the schema of the revision that it is spoken in.

use std::{collections::HashMap, path::PathBuf};

use pintle_proto::client::Mode;
use serde_json::{Value, json};

use super::{ALL, client::Client, engines::Pair, features::run_all, server::Server};

#[test]
fn every_line_fits_the_schema_of_its_revision() {
    for revision in ALL {
        let Some(mut schema) = Schema::read(revision) else {
            println!("skipped: no schemas; set PINTLE_SPEC_DIR");
            return;
        };
        let mut pair = Pair::new(Client::new(Mode::Auto, &[revision]), Server::new(&[revision]));
        pair.open().unwrap();
        run_all(&mut pair);
        // What a side was asked, to know what its answer must be.
        let (mut by_client, mut by_server) = (HashMap::new(), HashMap::new());
        for line in pair.wire.iter().filter(|line| !line.starts_with('#')) {
            let value: Value = serde_json::from_str(&line[2..]).unwrap();
            let messages = value.as_array().cloned().unwrap_or_else(|| vec![value]);
            for message in &messages {
                if line.starts_with('>') {
                    schema.check("Client", message, &mut by_client, &by_server);
                } else {
                    schema.check("Server", message, &mut by_server, &by_client);
                }
            }
        }
        assert!(schema.checked > 60, "{} lines only", schema.checked);
    }
}

type Asked = HashMap<String, String>;

struct Schema {
    revision: &'static str,
    document: Value,
    definitions: &'static str,
    validators: HashMap<String, jsonschema::Validator>,
    checked: usize,
}

impl Schema {
    fn read(revision: &'static str) -> Option<Self> {
        let folder = std::env::var_os("PINTLE_SPEC_DIR").map_or_else(
            || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/spec")),
            PathBuf::from,
        );
        let text = std::fs::read_to_string(folder.join(revision).join("schema.json")).ok()?;
        let document: Value = serde_json::from_str(&text).unwrap();
        let definitions = if document.get("$defs").is_some() { "$defs" } else { "definitions" };
        Some(Self { revision, document, definitions, validators: HashMap::new(), checked: 0 })
    }

    /// `asks` is what the side that speaks has asked, `asked` what the other side has.
    fn check(&mut self, side: &str, message: &Value, asks: &mut Asked, asked: &Asked) {
        let (method, id) = (message["method"].as_str(), message.get("id").map(Value::to_string));
        match (method, id) {
            // No schema has words for what an application defines.
            (Some(method), _) if method.starts_with("acme/") => {}
            (Some(method), Some(id)) => {
                asks.insert(id, method.to_owned());
                // The script asks for a level that there is not.
                if !message.to_string().contains("\"loud\"") {
                    self.validate(&format!("{side}Request"), message);
                }
            }
            (Some(_), None) => self.validate(&format!("{side}Notification"), message),
            (None, Some(id)) if message.get("result").is_some() => {
                let definition = match message["result"]["resultType"].as_str() {
                    Some("input_required") => "InputRequiredResult",
                    _ => answer_to(&asked[&id]),
                };
                self.validate(definition, &message["result"]);
            }
            (None, Some(_)) => self.validate("JSONRPCMessage", message),
            // An error without an id: only the newer schemas have words for it.
            (None, None) => assert_eq!(message["error"]["code"], -32600),
        }
    }

    fn validate(&mut self, definition: &str, value: &Value) {
        self.checked += 1;
        let Self { revision, document, definitions, validators, .. } = self;
        let validator = validators.entry(definition.to_owned()).or_insert_with(|| {
            assert!(document[*definitions].get(definition).is_some(), "{revision} has no {definition}");
            let mut root = document.clone();
            root["$ref"] = json!(format!("#/{definitions}/{definition}"));
            jsonschema::validator_for(&root).unwrap()
        });
        let faults: Vec<_> = validator.iter_errors(value).map(|fault| fault.to_string()).collect();
        assert!(faults.is_empty(), "{revision} {definition}: {value}\n{}", faults.join("\n"));
    }
}

/// The definition of a method's result.
fn answer_to(method: &str) -> &'static str {
    match method {
        "initialize" => "InitializeResult",
        "server/discover" => "DiscoverResult",
        "tools/list" => "ListToolsResult",
        "tools/call" => "CallToolResult",
        "resources/list" => "ListResourcesResult",
        "resources/read" => "ReadResourceResult",
        "prompts/get" => "GetPromptResult",
        "completion/complete" => "CompleteResult",
        "subscriptions/listen" => "SubscriptionsListenResult",
        "elicitation/create" => "ElicitResult",
        "sampling/createMessage" => "CreateMessageResult",
        "roots/list" => "ListRootsResult",
        _ => "EmptyResult",
    }
}
