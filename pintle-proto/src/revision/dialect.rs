use pintle_types::ErrorCode;

use super::{
    step::{CANONICAL, Step},
    v2024_11_05, v2025_03_26, v2025_06_18, v2025_11_25,
};

/// One revision: a row of the table of what differs within an era.
///
/// The ids in brackets are those of the digest of the specification.
#[allow(dead_code, reason = "the columns are read by the engines and the HTTP rules")]
pub(crate) struct Dialect {
    /// As it crosses the wire.
    pub(crate) name: &'static str,
    /// Handshake or not. What follows from it is code, not a column.
    pub(crate) era: Era,

    /// Requests from client to server (§1.1).
    pub(crate) client_requests: &'static [&'static str],
    /// Requests from server to client (§1.2). None in the stateless era (RPC-13).
    pub(crate) server_requests: &'static [&'static str],
    /// Notifications from client to server (§1.3).
    pub(crate) client_notifications: &'static [&'static str],
    /// Notifications from server to client (§1.3).
    pub(crate) server_notifications: &'static [&'static str],
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

    /// Whether a server declares `completions`. Where it cannot, a client just tries (CMP-1).
    pub(crate) completions_capability: bool,
    /// What a server can ask a user for (ELI-1, ELI-2).
    pub(crate) elicitation: Elicitation,
    /// Whether a form may have fields of several choices, and defaults other than of booleans (§4.14).
    pub(crate) rich_forms: bool,
    /// Whether a sampling request may offer tools and hold several blocks a message (SMP-2).
    pub(crate) sampling_tools: bool,
    /// Whether progress may say what is being done (§4.9).
    pub(crate) progress_message: bool,
    /// Whether the core has tasks (TASK-1).
    pub(crate) tasks: bool,

    /// Whether HTTP is an event stream and a second URL for messages (§3.2), rather than one endpoint.
    pub(crate) two_endpoints: bool,
    /// When a client names the revision in a header (LIFE-11, §1.6).
    pub(crate) version_header: VersionHeader,
    /// Whether there is an `Mcp-Session-Id` (§1.6).
    pub(crate) session_header: bool,
    /// Whether a broken event stream can be taken up again with `Last-Event-ID` (HTTP-19).
    pub(crate) resumable: bool,
    /// Whether an event stream begins with an id and no data (HTTP-13). Older clients may try to parse the nothing.
    pub(crate) priming_event: bool,
    /// Whether a server may hang up amid a stream after saying `retry`, and be polled (HTTP-14 to HTTP-16).
    pub(crate) polling: bool,

    /// The way from the next newer row to this one and back.
    pub(super) step: Step,
}

impl Dialect {
    pub(super) fn said(&self, said: Said) -> &'static [&'static str] {
        match said {
            Said::ClientRequest => self.client_requests,
            Said::ServerRequest => self.server_requests,
            Said::ClientNotification => self.client_notifications,
            Said::ServerNotification => self.server_notifications,
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

/// Who says a method, and whether an answer is expected.
#[allow(dead_code, reason = "asked by the engines")]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Said {
    ClientRequest,
    ServerRequest,
    ClientNotification,
    ServerNotification,
}

/// What a revision has to say about a method.
#[allow(dead_code, reason = "asked by the engines")]
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

/// What a server can ask a user for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Elicitation {
    None,
    Form,
    FormAndUrl,
}

/// When a client names the revision in a header.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum VersionHeader {
    Never,
    AfterOpening,
    Always,
}

/// Newest first. A new revision is a row on top, and a step for the row that it moves down.
pub(super) static DIALECTS: [Dialect; 5] = [
    Dialect {
        name: "2026-07-28",
        era: Era::Stateless,
        client_requests: &[
            "tools/call",
            "tools/list",
            "resources/read",
            "resources/list",
            "resources/templates/list",
            "prompts/get",
            "prompts/list",
            "completion/complete",
            "server/discover",
            "subscriptions/listen",
        ],
        server_requests: &[],
        client_notifications: &["notifications/cancelled"],
        server_notifications: &[
            "notifications/progress",
            "notifications/message",
            "notifications/cancelled",
            "notifications/resources/updated",
            "notifications/resources/list_changed",
            "notifications/tools/list_changed",
            "notifications/prompts/list_changed",
            "notifications/subscriptions/acknowledged",
        ],
        extensions: &["tasks/get", "tasks/update", "tasks/cancel", "notifications/tasks"],
        batches: false,
        bad_arguments: BadArguments::Result,
        resource_not_found: ErrorCode::INVALID_PARAMS,
        missing_capability: ErrorCode::MISSING_CLIENT_CAPABILITY,
        unsupported_version: ErrorCode::UNSUPPORTED_PROTOCOL_VERSION,
        url_elicitation_error: false,
        completions_capability: true,
        elicitation: Elicitation::FormAndUrl,
        rich_forms: true,
        sampling_tools: true,
        progress_message: true,
        tasks: false,
        two_endpoints: false,
        version_header: VersionHeader::Always,
        session_header: false,
        resumable: false,
        priming_event: false,
        polling: false,
        step: CANONICAL,
    },
    Dialect {
        name: "2025-11-25",
        era: Era::Session,
        client_requests: &[
            "tools/call",
            "tools/list",
            "resources/read",
            "resources/list",
            "resources/templates/list",
            "resources/subscribe",
            "resources/unsubscribe",
            "prompts/get",
            "prompts/list",
            "completion/complete",
            "ping",
            "logging/setLevel",
            "initialize",
            "tasks/get",
            "tasks/result",
            "tasks/list",
            "tasks/cancel",
        ],
        server_requests: &[
            "elicitation/create",
            "sampling/createMessage",
            "roots/list",
            "ping",
            "tasks/get",
            "tasks/result",
            "tasks/list",
            "tasks/cancel",
        ],
        client_notifications: &[
            "notifications/initialized",
            "notifications/cancelled",
            "notifications/progress",
            "notifications/roots/list_changed",
            "notifications/tasks/status",
        ],
        server_notifications: &[
            "notifications/progress",
            "notifications/message",
            "notifications/cancelled",
            "notifications/resources/updated",
            "notifications/resources/list_changed",
            "notifications/tools/list_changed",
            "notifications/prompts/list_changed",
            "notifications/elicitation/complete",
            "notifications/tasks/status",
        ],
        extensions: &[],
        batches: false,
        bad_arguments: BadArguments::Result,
        resource_not_found: ErrorCode::RESOURCE_NOT_FOUND,
        missing_capability: ErrorCode::INVALID_REQUEST,
        unsupported_version: ErrorCode::INVALID_PARAMS,
        url_elicitation_error: true,
        completions_capability: true,
        elicitation: Elicitation::FormAndUrl,
        rich_forms: true,
        sampling_tools: true,
        progress_message: true,
        tasks: true,
        two_endpoints: false,
        version_header: VersionHeader::AfterOpening,
        session_header: true,
        resumable: true,
        priming_event: true,
        polling: true,
        step: v2025_11_25::STEP,
    },
    Dialect {
        name: "2025-06-18",
        era: Era::Session,
        client_requests: FIRST_CLIENT_REQUESTS,
        server_requests: &["elicitation/create", "sampling/createMessage", "roots/list", "ping"],
        client_notifications: FIRST_CLIENT_NOTIFICATIONS,
        server_notifications: FIRST_SERVER_NOTIFICATIONS,
        extensions: &[],
        batches: false,
        bad_arguments: BadArguments::Error,
        resource_not_found: ErrorCode::RESOURCE_NOT_FOUND,
        missing_capability: ErrorCode::INVALID_REQUEST,
        unsupported_version: ErrorCode::INVALID_PARAMS,
        url_elicitation_error: false,
        completions_capability: true,
        elicitation: Elicitation::Form,
        rich_forms: false,
        sampling_tools: false,
        progress_message: true,
        tasks: false,
        two_endpoints: false,
        version_header: VersionHeader::AfterOpening,
        session_header: true,
        resumable: true,
        priming_event: false,
        polling: false,
        step: v2025_06_18::STEP,
    },
    Dialect {
        name: "2025-03-26",
        era: Era::Session,
        client_requests: FIRST_CLIENT_REQUESTS,
        server_requests: &["sampling/createMessage", "roots/list", "ping"],
        client_notifications: FIRST_CLIENT_NOTIFICATIONS,
        server_notifications: FIRST_SERVER_NOTIFICATIONS,
        extensions: &[],
        batches: true,
        bad_arguments: BadArguments::Error,
        resource_not_found: ErrorCode::RESOURCE_NOT_FOUND,
        missing_capability: ErrorCode::INVALID_REQUEST,
        unsupported_version: ErrorCode::INVALID_PARAMS,
        url_elicitation_error: false,
        completions_capability: true,
        elicitation: Elicitation::None,
        rich_forms: false,
        sampling_tools: false,
        progress_message: true,
        tasks: false,
        two_endpoints: false,
        version_header: VersionHeader::Never,
        session_header: true,
        resumable: true,
        priming_event: false,
        polling: false,
        step: v2025_03_26::STEP,
    },
    Dialect {
        name: "2024-11-05",
        era: Era::Session,
        client_requests: FIRST_CLIENT_REQUESTS,
        server_requests: &["sampling/createMessage", "roots/list", "ping"],
        client_notifications: FIRST_CLIENT_NOTIFICATIONS,
        server_notifications: FIRST_SERVER_NOTIFICATIONS,
        extensions: &[],
        batches: false,
        bad_arguments: BadArguments::Error,
        resource_not_found: ErrorCode::RESOURCE_NOT_FOUND,
        missing_capability: ErrorCode::INVALID_REQUEST,
        unsupported_version: ErrorCode::INVALID_PARAMS,
        url_elicitation_error: false,
        completions_capability: false,
        elicitation: Elicitation::None,
        rich_forms: false,
        sampling_tools: false,
        progress_message: false,
        tasks: false,
        two_endpoints: true,
        version_header: VersionHeader::Never,
        session_header: false,
        resumable: false,
        priming_event: false,
        polling: false,
        step: v2024_11_05::STEP,
    },
];

/// What the first three revisions have in common.
const FIRST_CLIENT_REQUESTS: &[&str] = &[
    "tools/call",
    "tools/list",
    "resources/read",
    "resources/list",
    "resources/templates/list",
    "resources/subscribe",
    "resources/unsubscribe",
    "prompts/get",
    "prompts/list",
    "completion/complete",
    "ping",
    "logging/setLevel",
    "initialize",
];
const FIRST_CLIENT_NOTIFICATIONS: &[&str] = &[
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/progress",
    "notifications/roots/list_changed",
];
const FIRST_SERVER_NOTIFICATIONS: &[&str] = &[
    "notifications/progress",
    "notifications/message",
    "notifications/cancelled",
    "notifications/resources/updated",
    "notifications/resources/list_changed",
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
];
