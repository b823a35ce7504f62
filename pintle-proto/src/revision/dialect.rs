use pintle_types::{ErrorCode, method};

#[cfg(any(test, feature = "next-revision"))]
use super::v2099_01_01;
use super::{edits::Step, v2025_03_26, v2025_06_18, v2025_11_25, v2026_07_28};

/// One revision: a row of the table of what differs within an era.
///
/// The ids in brackets are those of the digest of the specification.
#[derive(Clone, Copy)]
pub(crate) struct Dialect {
    /// As it crosses the wire.
    pub(crate) name: &'static str,
    /// Handshake or not. What follows from it is code, not a column.
    pub(crate) era: Era,

    /// Requests from client to server (§1.1).
    pub(crate) requests: &'static [&'static str],
    /// Notifications from client to server (§1.3).
    pub(crate) notifications: &'static [&'static str],
    /// Methods that official extensions of this revision define: known to whoever registered them, not to the core.
    pub(crate) extensions: &'static [&'static str],

    /// Whether an array of messages is a message (RPC-8, RPC-10).
    pub(crate) batches: bool,
    /// How arguments that do not fit a tool's schema are told (TOOL-10, TOOL-11).
    pub(crate) bad_arguments: BadArguments,
    /// The code for a resource that is not there (RES-5, RES-6).
    pub(crate) resource_not_found: ErrorCode,
    /// The code when the client did not declare what a request needs (VER-9).
    pub(crate) missing_capability: ErrorCode,
    /// The code when the revision named is not spoken here (LIFE-5, VER-5).
    pub(crate) unsupported_version: ErrorCode,
    /// Whether `URL_ELICITATION_REQUIRED` may be sent (ELI-12, RPC-14).
    pub(crate) url_elicitation_error: bool,

    /// Whether HTTP is an event stream and a second URL for messages (§3.2), rather than one endpoint.
    pub(crate) two_endpoints: bool,
    /// Whether a client names the revision in a header, once it is agreed on (LIFE-11, §1.6).
    pub(crate) version_header: bool,
    /// Whether an event stream begins with an id and no data, and may then be polled: a server hangs up after saying
    /// `retry`, and the client comes back (HTTP-13 to HTTP-16). Clients of others may try to parse the nothing.
    pub(crate) polling: bool,
    /// Whether requests repeat in headers what is in their bodies (§3.4).
    pub(crate) mirrored: bool,
    /// Whether a client that closes the stream of a request has cancelled it (§4.8).
    pub(crate) hanging_up_cancels: bool,
    /// Whether clients that are told by a 403 what they lack add it to what they were granted (§5.2).
    pub(crate) adds_to_granted: bool,

    /// The way from this row to the next older one and back.
    pub(super) step: Step,
}

impl Dialect {
    /// The methods of this kind that a client may send.
    pub(super) fn methods(&self, kind: MessageKind) -> &'static [&'static str] {
        match kind {
            MessageKind::Request => self.requests,
            MessageKind::Notification => self.notifications,
        }
    }
}

/// Whether a connection opens with a handshake.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Era {
    /// `initialize`, then everything else.
    Session,
    /// Every request stands alone.
    Stateless,
}

/// Whether a message expects an answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum MessageKind {
    Request,
    Notification,
}

/// What a revision has to say about a method.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Knows {
    /// It defines it.
    Has,
    /// Another revision defines it, this one does not: it must be refused here.
    Lacks,
    /// No core defines it: whoever registered it, as a custom method or for an extension, decides.
    Never,
}

/// How arguments that do not fit are told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum BadArguments {
    /// As a result with `isError`, which the model reads.
    Result,
    /// As an `INVALID_PARAMS` error.
    Error,
}

/// How many rows at the top are newer than the canonical one: of revisions that are not published, which are spoken only
/// by those who ask for them by constant.
///
/// A revision begins there, as a row and a file with its step. Once the types have its shapes, its row is the canonical one:
/// this number changes and nothing else.
pub(super) const DRAFTS: usize = if cfg!(any(test, feature = "next-revision")) { 1 } else { 0 };

/// Newest first. A new revision is a row on top, with its step.
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
        requests: FIRST_REQUESTS,
        notifications: FIRST_NOTIFICATIONS,
        extensions: &[],
        batches: false,
        bad_arguments: BadArguments::Error,
        resource_not_found: ErrorCode::RESOURCE_NOT_FOUND,
        missing_capability: ErrorCode::INVALID_REQUEST,
        unsupported_version: ErrorCode::INVALID_PARAMS,
        url_elicitation_error: false,
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
        requests: FIRST_REQUESTS,
        notifications: FIRST_NOTIFICATIONS,
        extensions: &[],
        batches: true,
        bad_arguments: BadArguments::Error,
        resource_not_found: ErrorCode::RESOURCE_NOT_FOUND,
        missing_capability: ErrorCode::INVALID_REQUEST,
        unsupported_version: ErrorCode::INVALID_PARAMS,
        url_elicitation_error: false,
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
        requests: FIRST_REQUESTS,
        notifications: FIRST_NOTIFICATIONS,
        extensions: &[],
        batches: false,
        bad_arguments: BadArguments::Error,
        resource_not_found: ErrorCode::RESOURCE_NOT_FOUND,
        missing_capability: ErrorCode::INVALID_REQUEST,
        unsupported_version: ErrorCode::INVALID_PARAMS,
        url_elicitation_error: false,
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
    two_endpoints: false,
    version_header: true,
    polling: false,
    mirrored: true,
    hanging_up_cancels: true,
    adds_to_granted: true,
    step: v2026_07_28::STEP,
};

/// What the first three revisions have in common.
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
