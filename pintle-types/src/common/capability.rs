use super::object;
use crate::JsonObject;

object! {
    /// The capabilities of a client.
    ///
    /// A capability is offered by being there, even when it is `{}`.
    ///
    /// ```
    /// use pintle_types::schema::{ClientCapabilities, ElicitationCapability};
    ///
    /// let mut offered = ClientCapabilities::new();
    /// offered.elicitation = Some(ElicitationCapability::new());
    /// assert_eq!(serde_json::to_string(&offered)?, r#"{"elicitation":{}}"#);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[derive(Debug, Default)]
    ClientCapabilities {
        /// Support for roots.
        roots?: RootsCapability,
        /// Support for sampling.
        sampling?: SamplingCapability,
        /// Support for elicitation.
        elicitation?: ElicitationCapability,
        /// Support for tasks. One session-era revision only.
        tasks?: ClientTasksCapability,
        /// Experimental capabilities, by name.
        experimental?: JsonObject,
        /// Settings of extensions, by identifier.
        extensions?: JsonObject,
        ..
    }
    /// Creates capabilities without any support.
    new()
}

object! {
    /// The roots capability of a client.
    #[derive(Debug, Default)]
    RootsCapability {
        /// Whether changes of the list are notified. Session era only.
        list_changed?: bool,
        ..
    }
    /// Creates the capability without notifications of changes.
    new()
}

object! {
    /// The sampling capability of a client.
    #[derive(Debug, Default)]
    SamplingCapability {
        /// Support for including the context of servers.
        context?: JsonObject,
        /// Support for tools in sampling.
        tools?: JsonObject,
        ..
    }
    /// Creates the capability of a model without tools or context.
    new()
}

object! {
    /// The elicitation capability of a client. If no mode is named, forms are meant.
    #[derive(Debug, Default)]
    ElicitationCapability {
        /// Support for forms.
        form?: JsonObject,
        /// Support for URLs to open.
        url?: JsonObject,
        ..
    }
    /// Creates the capability without modes, which means forms.
    new()
}

object! {
    /// The tasks capability of a client.
    #[derive(Debug, Default)]
    ClientTasksCapability {
        /// Support for `tasks/list`.
        list?: JsonObject,
        /// Support for `tasks/cancel`.
        cancel?: JsonObject,
        /// The requests that may be run as tasks.
        requests?: ClientTaskRequests,
        ..
    }
    /// Creates a value without members.
    new()
}

object! {
    /// The requests to a client that may be run as tasks.
    #[derive(Debug, Default)]
    ClientTaskRequests {
        /// Sampling requests.
        sampling?: SamplingTasks,
        /// Elicitation requests.
        elicitation?: ElicitationTasks,
        ..
    }
    /// Creates the capability without options.
    new()
}

object! {
    /// The sampling requests that may be run as tasks.
    #[derive(Debug, Default)]
    SamplingTasks {
        /// `sampling/createMessage`.
        create_message?: JsonObject,
        ..
    }
    /// Creates the capability without options.
    new()
}

object! {
    /// The elicitation requests that may be run as tasks.
    #[derive(Debug, Default)]
    ElicitationTasks {
        /// `elicitation/create`.
        create?: JsonObject,
        ..
    }
    /// Creates the capability without options.
    new()
}

object! {
    /// The capabilities of a server.
    ///
    /// A capability is offered by being there, even when it is `{}`.
    #[derive(Debug, Default)]
    ServerCapabilities {
        /// Support for tools.
        tools?: ToolsCapability,
        /// Support for resources.
        resources?: ResourcesCapability,
        /// Support for prompts.
        prompts?: PromptsCapability,
        /// Support for completing arguments.
        completions?: JsonObject,
        /// Support for log messages.
        logging?: JsonObject,
        /// Support for tasks. One session-era revision only.
        tasks?: ServerTasksCapability,
        /// Experimental capabilities, by name.
        experimental?: JsonObject,
        /// Settings of extensions, by identifier.
        extensions?: JsonObject,
        ..
    }
    /// Creates capabilities without any support.
    new()
}

object! {
    /// The tools capability of a server.
    #[derive(Debug, Default)]
    ToolsCapability {
        /// Whether changes of the list are notified.
        list_changed?: bool,
        ..
    }
    /// Creates the capability without notifications of changes.
    new()
}

object! {
    /// The prompts capability of a server.
    #[derive(Debug, Default)]
    PromptsCapability {
        /// Whether changes of the list are notified.
        list_changed?: bool,
        ..
    }
    /// Creates the capability without notifications of changes.
    new()
}

object! {
    /// The resources capability of a server.
    #[derive(Debug, Default)]
    ResourcesCapability {
        /// Whether clients can subscribe to single resources.
        subscribe?: bool,
        /// Whether changes of the list are notified.
        list_changed?: bool,
        ..
    }
    /// Creates the capability without notifications of changes.
    new()
}

object! {
    /// The tasks capability of a server.
    #[derive(Debug, Default)]
    ServerTasksCapability {
        /// Support for `tasks/list`.
        list?: JsonObject,
        /// Support for `tasks/cancel`.
        cancel?: JsonObject,
        /// The requests that may be run as tasks.
        requests?: ServerTaskRequests,
        ..
    }
    /// Creates a value without members.
    new()
}

object! {
    /// The requests to a server that may be run as tasks.
    #[derive(Debug, Default)]
    ServerTaskRequests {
        /// Tool requests.
        tools?: ToolTasks,
        ..
    }
    /// Creates the capability without options.
    new()
}

object! {
    /// The tool requests that may be run as tasks.
    #[derive(Debug, Default)]
    ToolTasks {
        /// `tools/call`.
        call?: JsonObject,
        ..
    }
    /// Creates the capability without options.
    new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_offered_comes_back() {
        for text in [
            "{}",
            r#"{"roots":{"listChanged":true},"sampling":{"context":{},"tools":{}},"elicitation":{"form":{},"url":{}},"tasks":{"cancel":{},"requests":{"sampling":{"createMessage":{}},"elicitation":{"create":{}}}}}"#,
            r#"{"experimental":{"x":true},"extensions":{"com.example/a":{"b":1}},"telepathy":{"range":3}}"#,
        ] {
            let capabilities: ClientCapabilities = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&capabilities).unwrap(), text);
        }
        let text = r#"{"tools":{"listChanged":false},"resources":{"subscribe":true,"novel":1},"prompts":{},"completions":{},"logging":{},"tasks":{"list":{},"requests":{"tools":{"call":{}}}}}"#;
        let capabilities: ServerCapabilities = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&capabilities).unwrap(), text);
    }
}
