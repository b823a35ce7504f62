//! The table of `docs/limits.md`, which `cargo xtask limits` writes.

/// Something that a peer makes a server hold.
pub(crate) struct LimitRow {
    pub(crate) what: &'static str,
    /// How much of it one owner has.
    pub(crate) owner: &'static str,
    pub(crate) all: &'static str,
    /// What a client sees at the limit.
    pub(crate) seen: &'static str,
    pub(crate) setting: &'static str,
}

const FULL: &str = "error -31503 with `retryAfterMs`, over HTTP 429 for a client at its limit, else 503";

pub(crate) const ROWS: &[LimitRow] = &[
    LimitRow {
        what: "everything below that is \"charged\"",
        owner: "128 MiB; a network 256 MiB",
        all: "512 MiB, of which 384 MiB without a principal",
        seen: FULL,
        setting: "`Limits::held_bytes`",
    },
    LimitRow {
        what: "params of calls that wait or run, until the handler is dropped: charged",
        owner: "as above",
        all: "as above",
        seen: "as above; a running call of the client that holds most ends with -32603",
        setting: "`Limits::held_bytes`; one message: `Limits::message_bytes`, 16 MiB",
    },
    LimitRow {
        what: "params and questions of calls that wait for answers in a relay to a server with sessions: charged",
        owner: "64 MiB; a network 128 MiB; 32 calls of a caller; one call 1 MiB of questions",
        all: "256 MiB, of which 192 MiB without a principal; 1,024 calls of a relay",
        seen: "the call ends with -32603; a call of the client that holds most is cancelled, and its answers get -32602",
        setting: "`Limits::held_bytes` (half)",
    },
    LimitRow {
        what: "bodies of requests that are arriving: charged",
        owner: "64 MiB; a network 128 MiB",
        all: "256 MiB, of which 192 MiB without a principal",
        seen: "429 for a client at its limit, else 503; 408 for a slow body",
        setting: "`Http::max_bytes_in_transit`, `Http::body_limits`",
    },
    LimitRow {
        what: "sessions and subscriptions: descriptions of clients, watched URIs: charged",
        owner: "16 MiB; a network 32 MiB; one session or subscription 256 KiB",
        all: "64 MiB, of which 48 MiB without a principal",
        seen: "as in the first row; -32602 above 256 KiB; a session of the client that holds most ends (404)",
        setting: "`Limits::sessions_bytes`, `Limits::session_bytes`",
    },
    LimitRow {
        what: "notifications whose handlers run, each with 16 KiB: charged",
        owner: "16 MiB; a network 32 MiB",
        all: "64 MiB, of which 48 MiB without a principal",
        seen: "nothing: the notification is dropped, and logged",
        setting: "`Limits::held_bytes` (an eighth)",
    },
    LimitRow {
        what: "messages that wait for the GET stream of a session: charged",
        owner: "16 MiB; a network 32 MiB; one session 256 messages or 1 MiB",
        all: "64 MiB, of which 48 MiB without a principal",
        seen: "the oldest messages are not sent",
        setting: "`Limits::held_bytes` (an eighth)",
    },
    LimitRow {
        what: "notifications of extensions that a session or subscription has not read: charged",
        owner: "16 MiB; a network 32 MiB; one listener 1,024 or 1 MiB, while nobody reads 32 or 64 KiB",
        all: "64 MiB, of which 48 MiB without a principal",
        seen: "the oldest are not sent; those of the client that holds most give way",
        setting: "`Limits::held_bytes` (an eighth)",
    },
    LimitRow {
        what: "sessions",
        owner: "1,000 of a principal; 10,000 of an address, 20,000 of a network",
        all: "100,000, of which 75,000 without a principal",
        seen: "the session of the client that has most ends (404); 429 or 503 for who has most and uses all",
        setting: "`Http::max_sessions`, `max_sessions_per_principal`, `max_sessions_per_address`",
    },
    LimitRow {
        what: "subscriptions of the stateless era",
        owner: "1,024 of a connection or principal; an address an eighth of all, 2,048",
        all: "16,384 without a principal",
        seen: "a subscription of the network that has most ends; 429 or 503 with `Retry-After` for who has most",
        setting: "`Limits::subscriptions`, `Http::max_anonymous_subscriptions`",
    },
    LimitRow {
        what: "unanswered requests",
        owner: "16,384 of a connection or session",
        all: "by the limits of connections and sessions",
        seen: "error -31503 with `retryAfterMs`, over HTTP 429",
        setting: "`Limits::in_flight`",
    },
    LimitRow {
        what: "calls whose clients have left",
        owner: "128 of a session; 1,024 of a client",
        all: "8,192, of which half without a principal",
        seen: "the call ends with -32603",
        setting: "`Timeouts::detached_call` (how long)",
    },
    LimitRow {
        what: "events for clients that resume a stream",
        owner: "1 MiB of a session; who has most loses the oldest",
        all: "64 MiB for 5 minutes",
        seen: "400 when the stream is resumed: open one without `Last-Event-ID`, and ask again",
        setting: "`LogBounds` of a `MemoryLog`, `Http::event_log`",
    },
    LimitRow {
        what: "results that were cut, to be read as a whole for 10 minutes",
        owner: "16 MiB or 1,000 results; the oldest are dropped",
        all: "128 MiB or 10,000 results of a `ResultLimit`; who has most loses the oldest",
        seen: "the resource that the result links to does not exist any more",
        setting: "`ResultLimit::max_kept`, `ResultLimit::lifetime`",
    },
    LimitRow {
        what: "tasks, with their questions and results, until they expire",
        owner: "128 tasks and 16 MiB of a caller; one task 8 MiB",
        all: "16,384 tasks and 256 MiB of a store",
        seen: "error -31503 with `retryAfterMs`; -32602 for arguments above 8 MiB; a task with a longer result fails",
        setting: "`Tasks::quota`",
    },
    LimitRow {
        what: "used `requestState`s, with their replies",
        owner: "8 MiB of a principal, or of all without one; what expires first is dropped",
        all: "64 MiB of a `MemoryStore`; who has most loses what expires first",
        seen: "-32602 for a state whose use or reply is not kept any more: start the call again",
        setting: "`MemoryStore::bytes`, `MemoryStore::bytes_per_principal`",
    },
    LimitRow {
        what: "messages between the processes of a fleet, in Redis",
        owner: "an answer goes to the process that asked, if it is one",
        all: "64 MiB of an inbox",
        seen: "503 with `Retry-After`",
        setting: "none",
    },
];
