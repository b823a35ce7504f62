use std::sync::Arc;

use pintle::{
    forward::question_keys,
    types::{RawObject, schema::ClientCapabilities},
};

use crate::lock::LastValue;

/// The capabilities of a client that the server behind may use, and their JSON.
#[derive(Debug)]
pub(super) struct DeclaredCapabilities {
    pub(super) capabilities: ClientCapabilities,
    pub(super) printed: RawObject,
}

impl DeclaredCapabilities {
    pub(super) fn new(capabilities: ClientCapabilities) -> Arc<Self> {
        // What cannot be printed is not declared.
        let printed = RawObject::from_serialize(&capabilities).unwrap_or_default();
        Arc::new(Self { capabilities, printed })
    }

    /// Returns those of a client that has declared these. Extensions are between two neighbours, unless the relay passes all of their
    /// messages on.
    fn of_client(declared: &ClientCapabilities) -> Arc<Self> {
        let mut capabilities = declared.clone();
        // The relay asks for answers, not for tasks.
        capabilities.tasks = None;
        if let Some(extensions) = &mut capabilities.extensions {
            // That of the relay itself.
            extensions.remove(question_keys::EXTENSION);
        }
        Self::new(capabilities)
    }
}

/// The capabilities of the last client: the next call is mostly one of the same client, or of one that has declared the same.
#[derive(Debug, Default)]
pub(super) struct LastDeclared(LastValue<(ClientCapabilities, Arc<DeclaredCapabilities>)>);

impl LastDeclared {
    /// Returns what the server behind may use of a client with these capabilities.
    pub(super) fn of(&self, declared: &ClientCapabilities) -> Arc<DeclaredCapabilities> {
        if let Some(last) = self.0.get(|(known, _)| known == declared) {
            return last.1.clone();
        }
        let of_client = DeclaredCapabilities::of_client(declared);
        self.0.set(Arc::new((declared.clone(), of_client.clone())));
        of_client
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn client(declared: serde_json::Value) -> ClientCapabilities {
        serde_json::from_value(declared).unwrap()
    }

    #[test]
    fn tasks_and_what_is_of_the_relay_are_not_passed_on() {
        let extensions = json!({ "com.example/x": {}, question_keys::EXTENSION: {} });
        let declared = client(json!({ "sampling": {}, "tasks": {}, "extensions": extensions }));
        let passed = LastDeclared::default().of(&declared);
        assert_eq!(passed.printed.as_str(), r#"{"sampling":{},"extensions":{"com.example/x":{}}}"#);
        assert_eq!(passed.capabilities.tasks, None);
    }

    #[test]
    fn each_client_has_its_own() {
        let last = LastDeclared::default();
        let (one, other) = (client(json!({ "sampling": {} })), client(json!({ "roots": {} })));
        for (declared, printed) in [(&one, r#"{"sampling":{}}"#), (&other, r#"{"roots":{}}"#)].repeat(2) {
            assert_eq!(last.of(declared).printed.as_str(), printed);
            assert!(Arc::ptr_eq(&last.of(declared), &last.of(declared)), "it is printed once");
        }
    }
}
