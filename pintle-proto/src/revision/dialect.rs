use pintle_types::{ErrorCode, method};

#[cfg(any(test, feature = "next-revision"))]
use super::v2099_01_01;
use super::{edits::Step, v2025_03_26, v2025_06_18, v2025_11_25, v2026_07_28};
use crate::{Facts, TaskKind};

/// One revision: a row of the table of what differs within an era.
///
/// The ids in brackets are those of the digest of the specification.
#[derive(Clone, Copy)]
pub(crate) struct Dialect {
    /// The name on the wire.
    pub(crate) name: &'static str,
    /// The era. Its consequences are code, not columns.
    pub(crate) era: Era,
    /// The facts that code above this crate knows of it.
    pub(crate) facts: Facts,

    /// Requests from client to server (§1.1).
    pub(crate) requests: &'static [&'static str],
    /// Notifications from client to server (§1.3).
    pub(crate) notifications: &'static [&'static str],
    /// Methods that official extensions of this revision define: available if they are registered, not in the core.
    pub(crate) extensions: &'static [&'static str],

    /// Whether messages can be sent in batches (RPC-8, RPC-10).
    pub(crate) batches: bool,
    /// The form in which invalid arguments of a tool are reported (TOOL-10, TOOL-11).
    pub(crate) bad_arguments: BadArguments,
    /// The code for a resource that does not exist (RES-5, RES-6).
    pub(crate) resource_not_found: ErrorCode,
    /// The code for a request that requires an undeclared capability (VER-9).
    pub(crate) missing_capability: ErrorCode,
    /// The code for an unsupported revision (LIFE-5, VER-5).
    pub(crate) unsupported_version: ErrorCode,
    /// Whether elicitations with a URL have an id, so that `URL_ELICITATION_REQUIRED` (ELI-12, RPC-14) and
    /// `notifications/elicitation/complete` (ELI-13) may be sent.
    pub(crate) url_elicitation_error: bool,
    /// Whether clients declare that they support `includeContext` (SMP-3). In other revisions all may be asked for it.
    pub(crate) sampling_context: bool,

    /// Whether HTTP is an event stream and a second URL for messages (§3.2), rather than one endpoint.
    pub(crate) two_endpoints: bool,
    /// Whether a client names the revision in a header, once it is agreed on (LIFE-11, §1.6).
    pub(crate) version_header: bool,
    /// Whether an event stream begins with an id and no data, and can then be polled: the server closes it after a
    /// `retry`, and the client reconnects (HTTP-13 to HTTP-16). Clients of other revisions may try to parse the empty
    /// data.
    pub(crate) polling: bool,
    /// Whether headers mirror the body (§3.4).
    pub(crate) mirrored: bool,
    /// Whether closing the stream of a request cancels it (§4.8).
    pub(crate) hanging_up_cancels: bool,
    /// Whether clients add the scopes that a 403 names to those they were granted (§5.2).
    pub(crate) adds_to_granted: bool,

    /// The conversion between this revision and the next older one.
    pub(super) step: Step,
}

impl Dialect {
    /// Returns the methods of this kind that a client may send.
    pub(crate) fn methods(&self, kind: MessageKind) -> &'static [&'static str] {
        match kind {
            MessageKind::Request => self.requests,
            MessageKind::Notification => self.notifications,
        }
    }
}

/// An era: whether a connection opens with a handshake.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Era {
    /// A connection opens with `initialize`.
    Session,
    /// Every request is self-contained.
    Stateless,
}

/// The kind of a message: whether it expects a response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum MessageKind {
    Request,
    Notification,
}

/// Whether a revision defines a method.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Knows {
    /// The revision defines it.
    Has,
    /// Another revision defines it and this one does not: it must be refused.
    Lacks,
    /// No revision defines it: it may be a custom method, or an extension's.
    Never,
}

/// The form in which invalid arguments are reported.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum BadArguments {
    /// A result with `isError`, for the model.
    Result,
    /// An `INVALID_PARAMS` error.
    Error,
}

/// The number of rows at the top that are newer than the canonical one: unpublished revisions, which are used only if
/// they are selected by constant.
///
/// A new revision starts there, as a row and a file with its step. Once the types have its shapes, its row becomes the
/// canonical one: this number changes and nothing else.
pub(super) const DRAFTS: usize = if cfg!(any(test, feature = "next-revision")) { 1 } else { 0 };

/// The dialect table, newest first. A new revision is a row at the top.
pub(super) static DIALECTS: &[Dialect] = &[
    #[cfg(any(test, feature = "next-revision"))]
    Dialect {
        name: "2099-01-01",
        requests: &[
            method::TOOLS_CALL,
            method::TOOLS_LIST,
            method::RESOURCES_READ,
            method::RESOURCES_LIST,
            method::RESOURCES_TEMPLATES_LIST,
            method::PROMPTS_GET,
            method::PROMPTS_LIST,
            method::COMPLETION_COMPLETE,
            method::SERVER_DISCOVER,
            method::SUBSCRIPTIONS_LISTEN,
            v2099_01_01::ECHO,
        ],
        step: v2099_01_01::STEP,
        ..V2026_07_28
    },
    V2026_07_28,
    Dialect {
        name: "2025-11-25",
        era: Era::Session,
        facts: Facts { tasks: TaskKind::Protocol, ..Facts::SESSION },
        requests: &[
            method::TOOLS_CALL,
            method::TOOLS_LIST,
            method::RESOURCES_READ,
            method::RESOURCES_LIST,
            method::RESOURCES_TEMPLATES_LIST,
            method::RESOURCES_SUBSCRIBE,
            method::RESOURCES_UNSUBSCRIBE,
            method::PROMPTS_GET,
            method::PROMPTS_LIST,
            method::COMPLETION_COMPLETE,
            method::PING,
            method::LOGGING_SET_LEVEL,
            method::INITIALIZE,
            method::TASKS_GET,
            method::TASKS_RESULT,
            method::TASKS_LIST,
            method::TASKS_CANCEL,
        ],
        notifications: &[
            method::NOTIFICATIONS_INITIALIZED,
            method::NOTIFICATIONS_CANCELLED,
            method::NOTIFICATIONS_PROGRESS,
            method::NOTIFICATIONS_ROOTS_LIST_CHANGED,
            method::NOTIFICATIONS_TASKS_STATUS,
        ],
        extensions: &[],
        batches: false,
        bad_arguments: BadArguments::Result,
        resource_not_found: ErrorCode::RESOURCE_NOT_FOUND,
        missing_capability: ErrorCode::INVALID_REQUEST,
        unsupported_version: ErrorCode::INVALID_PARAMS,
        url_elicitation_error: true,
        sampling_context: true,
        two_endpoints: false,
        version_header: true,
        polling: true,
        mirrored: false,
        hanging_up_cancels: false,
        adds_to_granted: false,
        step: v2025_11_25::STEP,
    },
    Dialect {
        name: "2025-06-18",
        era: Era::Session,
        facts: Facts::SESSION,
        requests: FIRST_REQUESTS,
        notifications: FIRST_NOTIFICATIONS,
        extensions: &[],
        batches: false,
        bad_arguments: BadArguments::Error,
        resource_not_found: ErrorCode::RESOURCE_NOT_FOUND,
        missing_capability: ErrorCode::INVALID_REQUEST,
        unsupported_version: ErrorCode::INVALID_PARAMS,
        url_elicitation_error: false,
        sampling_context: false,
        two_endpoints: false,
        version_header: true,
        polling: false,
        mirrored: false,
        hanging_up_cancels: false,
        adds_to_granted: false,
        step: v2025_06_18::STEP,
    },
    Dialect {
        name: "2025-03-26",
        era: Era::Session,
        facts: Facts::SESSION,
        requests: FIRST_REQUESTS,
        notifications: FIRST_NOTIFICATIONS,
        extensions: &[],
        batches: true,
        bad_arguments: BadArguments::Error,
        resource_not_found: ErrorCode::RESOURCE_NOT_FOUND,
        missing_capability: ErrorCode::INVALID_REQUEST,
        unsupported_version: ErrorCode::INVALID_PARAMS,
        url_elicitation_error: false,
        sampling_context: false,
        two_endpoints: false,
        version_header: false,
        polling: false,
        mirrored: false,
        hanging_up_cancels: false,
        adds_to_granted: false,
        step: v2025_03_26::STEP,
    },
    Dialect {
        name: "2024-11-05",
        era: Era::Session,
        facts: Facts::SESSION,
        requests: FIRST_REQUESTS,
        notifications: FIRST_NOTIFICATIONS,
        extensions: &[],
        batches: false,
        bad_arguments: BadArguments::Error,
        resource_not_found: ErrorCode::RESOURCE_NOT_FOUND,
        missing_capability: ErrorCode::INVALID_REQUEST,
        unsupported_version: ErrorCode::INVALID_PARAMS,
        url_elicitation_error: false,
        sampling_context: false,
        two_endpoints: true,
        version_header: false,
        polling: false,
        mirrored: false,
        hanging_up_cancels: false,
        adds_to_granted: false,
        step: Step::NONE,
    },
];

/// The first stateless revision.
const V2026_07_28: Dialect = Dialect {
    name: "2026-07-28",
    era: Era::Stateless,
    facts: Facts::STATELESS,
    requests: &[
        method::TOOLS_CALL,
        method::TOOLS_LIST,
        method::RESOURCES_READ,
        method::RESOURCES_LIST,
        method::RESOURCES_TEMPLATES_LIST,
        method::PROMPTS_GET,
        method::PROMPTS_LIST,
        method::COMPLETION_COMPLETE,
        method::SERVER_DISCOVER,
        method::SUBSCRIPTIONS_LISTEN,
    ],
    notifications: &[method::NOTIFICATIONS_CANCELLED],
    extensions: &[method::TASKS_GET, method::tasks_extension::TASKS_UPDATE, method::TASKS_CANCEL],
    batches: false,
    bad_arguments: BadArguments::Result,
    resource_not_found: ErrorCode::INVALID_PARAMS,
    missing_capability: ErrorCode::MISSING_CLIENT_CAPABILITY,
    unsupported_version: ErrorCode::UNSUPPORTED_PROTOCOL_VERSION,
    url_elicitation_error: false,
    sampling_context: true,
    two_endpoints: false,
    version_header: true,
    polling: false,
    mirrored: true,
    hanging_up_cancels: true,
    adds_to_granted: true,
    step: v2026_07_28::STEP,
};

/// The requests of the first three revisions.
const FIRST_REQUESTS: &[&str] = &[
    method::TOOLS_CALL,
    method::TOOLS_LIST,
    method::RESOURCES_READ,
    method::RESOURCES_LIST,
    method::RESOURCES_TEMPLATES_LIST,
    method::RESOURCES_SUBSCRIBE,
    method::RESOURCES_UNSUBSCRIBE,
    method::PROMPTS_GET,
    method::PROMPTS_LIST,
    method::COMPLETION_COMPLETE,
    method::PING,
    method::LOGGING_SET_LEVEL,
    method::INITIALIZE,
];
const FIRST_NOTIFICATIONS: &[&str] = &[
    method::NOTIFICATIONS_INITIALIZED,
    method::NOTIFICATIONS_CANCELLED,
    method::NOTIFICATIONS_PROGRESS,
    method::NOTIFICATIONS_ROOTS_LIST_CHANGED,
];

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, env, fs, path::PathBuf};

    use serde_json::Value;

    use super::*;

    /// The constants of `method` in the definition `name`, which is one message or a choice of several.
    fn methods(schema: &Value, name: &str) -> BTreeSet<String> {
        let definitions = schema.get("$defs").unwrap_or(&schema["definitions"]);
        let union = &definitions[name];
        let choices = union["anyOf"].as_array().map_or(std::slice::from_ref(union), Vec::as_slice);
        let definition = |choice: &'_ Value| match choice["$ref"].as_str() {
            Some(path) => definitions[path.rsplit('/').next().unwrap()].clone(),
            None => choice.clone(),
        };
        choices
            .iter()
            .map(|choice| definition(choice)["properties"]["method"]["const"].as_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn a_client_can_say_what_the_schema_lists() {
        let beside = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/spec"));
        let folder = env::var_os("PINTLE_SPEC_DIR").map_or_else(beside, PathBuf::from);
        for row in DIALECTS {
            let path = folder.join(row.name).join("schema.json");
            let Ok(text) = fs::read(&path) else {
                println!("skipped: no schema at {}", path.display());
                continue;
            };
            let schema = serde_json::from_slice(&text).unwrap();
            for (kind, union) in
                [(MessageKind::Request, "ClientRequest"), (MessageKind::Notification, "ClientNotification")]
            {
                let ours: BTreeSet<_> = row.methods(kind).iter().map(|name| (*name).to_owned()).collect();
                assert_eq!(ours, methods(&schema, union), "`{union}` of {}", row.name);
                assert_eq!(ours.len(), row.methods(kind).len(), "a name is there twice");
            }
        }
    }
}
