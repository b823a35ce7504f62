//! The rows of `docs/replies.md`.

use super::table::{Given, Row, all, batch, eras, row};

const UNREAD: &str = "-32600, no id";
const NOT_JSON: &str = "-32700, no id";

pub(super) static SECTIONS: &[(&str, &[Row])] = &[
    ("Bytes", BYTES),
    ("Envelope", ENVELOPE),
    ("Methods and responses", METHODS),
    ("Params", PARAMS),
    ("Metadata of a stateless request", STAMP),
    ("Input requests and subscriptions", ASKING),
    ("Batches", BATCHES),
    ("Before the handshake", EARLY),
    ("Limits", LIMITS),
];

const BYTES: &[Row] = &[
    row("not JSON", "hello", all(NOT_JSON)),
    row("an empty line", "", all(NOT_JSON)),
    row("truncated", r#"{"jsonrpc":"2.0","id":1,"#, all(NOT_JSON)),
    row("trailing characters", r#"{"jsonrpc":"2.0","id":1,"method":"ping"} x"#, all(NOT_JSON)),
    row("two messages on a line", r#"{"jsonrpc":"2.0","id":1,"method":"ping"}{}"#, all(NOT_JSON)),
    row("single quotes", "{'jsonrpc':'2.0'}", all(NOT_JSON)),
    row("a trailing comma", r#"{"jsonrpc":"2.0","id":1,"method":"ping",}"#, all(NOT_JSON)),
    row("invalid UTF-8", r#"{"jsonrpc":"2.0","id":1,"method":"\xff"}"#, all(NOT_JSON)),
    row("invalid UTF-8 in an array", r#"[{"jsonrpc":"2.0","id":1,"method":"\xff"}]"#, all(NOT_JSON)),
    row("a byte order mark", r#"\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}"#, all("`{}`")),
    row("a NUL byte", r#"{"jsonrpc":"2.0","id":1,"method":"pi\x00ng"}"#, all(NOT_JSON)),
    row("a lone surrogate in the method", r#"{"jsonrpc":"2.0","id":1,"method":"\ud800"}"#, all("-32600")),
    row(
        "a lone surrogate in the params",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{@,"name":"\ud800"}}"#,
        all("-32602"),
    ),
    row(
        "a number out of range",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{@,"name":"echo","arguments":{"n":1e999}}}"#,
        all("-32602"),
    ),
    row(
        "deep nesting in the params",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{@,"name":"echo","arguments":⟨[×100000⟩⟨]×100000⟩}}"#,
        all("-32602"),
    ),
    row(
        "deep nesting in an ignored member",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","extra":⟨[×100000⟩⟨]×100000⟩,"params":{@,"name":"echo"}}"#,
        all("result"),
    ),
    row("only deep nesting", "⟨[×100000⟩⟨]×100000⟩", batch(UNREAD, "[-32600, no id]")),
];

const ENVELOPE: &[Row] = &[
    row("a number", "5", all(UNREAD)),
    row("a string", r#""ping""#, all(UNREAD)),
    row("`null`", "null", all(UNREAD)),
    row("an empty object", "{}", all(UNREAD)),
    row("no `jsonrpc`", r#"{"id":1,"method":"ping"}"#, all("-32600")),
    row("another `jsonrpc`", r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, all("-32600")),
    row("`jsonrpc` is a number", r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#, all("-32600")),
    row("`jsonrpc` is null", r#"{"jsonrpc":null,"id":1,"method":"ping"}"#, all("-32600")),
    row("`id` is null", r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, all(UNREAD)),
    row("`id` is a fraction", r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, all(UNREAD)),
    row("`id` is a whole float", r#"{"jsonrpc":"2.0","id":1.0,"method":"ping"}"#, all(UNREAD)),
    row("`id` is a boolean", r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, all(UNREAD)),
    row("`id` is an object", r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, all(UNREAD)),
    row("`id` is an array", r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, all(UNREAD)),
    row(
        "`id` is beyond 64 bits",
        r#"{"jsonrpc":"2.0","id":9223372036854775808,"method":"ping"}"#,
        all(UNREAD),
    ),
    row(
        "`id` is negative",
        r#"{"jsonrpc":"2.0","id":-1,"method":"tools/call","params":{@,"name":"echo"}}"#,
        all("result"),
    ),
    row(
        "`id` is empty",
        r#"{"jsonrpc":"2.0","id":"","method":"tools/call","params":{@,"name":"echo"}}"#,
        all("result"),
    ),
    row("`id` occurs twice", r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, all(UNREAD)),
    row("no `method`", r#"{"jsonrpc":"2.0","id":1}"#, all("-32600")),
    row("`method` is a number", r#"{"jsonrpc":"2.0","id":1,"method":5}"#, all("-32600")),
    row("`method` is null", r#"{"jsonrpc":"2.0","id":1,"method":null}"#, all("-32600")),
    row(
        "`params` is an array",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[1]}"#,
        all("-32600"),
    ),
    row(
        "`params` is a string",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":"x"}"#,
        all("-32600"),
    ),
    row(
        "`params` is a number",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":0}"#,
        all("-32600"),
    ),
    row(
        "`params` is null",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":null}"#,
        eras("result", "-32602"),
    ),
    row(
        "a param occurs twice",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{@,"name":"echo","name":"fail"}}"#,
        all("-32600"),
    ),
    row(
        "a param occurs twice, once escaped",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{@,"name":"echo","n\u0061me":"fail"}}"#,
        all("-32600"),
    ),
    row("`method` beside `result`", r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#, all("-32600")),
    row(
        "a notification whose `params` is a number",
        r#"{"jsonrpc":"2.0","method":"notifications/x","params":5}"#,
        all("nothing"),
    ),
    row(
        "a notification whose `params` is an array",
        r#"{"jsonrpc":"2.0","method":"notifications/x","params":[1]}"#,
        all("nothing"),
    ),
    row(
        "a notification whose `method` is a number",
        r#"{"jsonrpc":"2.0","method":1,"params":"bar"}"#,
        all(UNREAD),
    ),
    row(
        "unknown members",
        r#"{"x":1,"jsonrpc":"2.0","params":{@,"name":"echo","y":2},"method":"tools/call","id":1}"#,
        all("result"),
    ),
];

const METHODS: &[Row] = &[
    row("an unknown method", r#"{"jsonrpc":"2.0","id":1,"method":"nope","params":{@}}"#, all("-32601")),
    row("an empty method", r#"{"jsonrpc":"2.0","id":1,"method":"","params":{@}}"#, all("-32601")),
    row(
        "a method in another case",
        r#"{"jsonrpc":"2.0","id":1,"method":"Tools/List","params":{@}}"#,
        all("-32601"),
    ),
    row(
        "a method of another era",
        r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{@}}"#,
        eras("-32601", "result"),
    ),
    row(
        "a removed method",
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{@}}"#,
        eras("`{}`", "-32601"),
    ),
    row(
        "a handshake, repeated or in the wrong era",
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{@,"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
        eras("result", "-32601"),
    ),
    row(
        "an invalid handshake, repeated or in the wrong era",
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{@}}"#,
        eras("-32602", "-32601"),
    ),
    row(
        "a notification's name on a request",
        r#"{"jsonrpc":"2.0","id":1,"method":"notifications/initialized","params":{@}}"#,
        all("-32601"),
    ),
    row("a server's method", r#"{"jsonrpc":"2.0","id":1,"method":"roots/list","params":{@}}"#, all("-32601")),
    row("an unknown notification", r#"{"jsonrpc":"2.0","method":"notifications/nope"}"#, all("nothing")),
    row(
        "a request's name on a notification",
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo"}}"#,
        all("nothing"),
    ),
    row("an unexpected response", r#"{"jsonrpc":"2.0","id":99,"result":{}}"#, all("nothing")),
    row(
        "an unexpected error",
        r#"{"jsonrpc":"2.0","id":"x","error":{"code":-1,"message":"no"}}"#,
        all("nothing"),
    ),
    row(
        "an error without an id",
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}"#,
        all("nothing"),
    ),
    row("an answer that is not an object", r#"{"jsonrpc":"2.0","id":1,"result":5}"#, all("nothing")),
    row(
        "a result and an error",
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#,
        all("nothing"),
    ),
    row("an error without a code", r#"{"jsonrpc":"2.0","id":1,"error":{"message":"no"}}"#, all("nothing")),
    row("an error that is an array", r#"{"jsonrpc":"2.0","id":1,"error":[1,"no"]}"#, all("nothing")),
    row(
        "an error whose code is a fraction",
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":"no"}}"#,
        all("nothing"),
    ),
    row("a response of another JSON-RPC version", r#"{"jsonrpc":"1.0","id":1,"result":{}}"#, all("nothing")),
    row(
        "a cancellation of an unknown id",
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}"#,
        all("nothing"),
    ),
    row(
        "a cancellation without an id",
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
        all("nothing"),
    ),
    row(
        "a cancellation of a fraction",
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1.5}}"#,
        all("nothing"),
    ),
    row(
        "an id that is in flight",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{@,"name":"echo"}}"#,
        all("-32600"),
    )
    .given(Given::SlowCall),
    row(
        "the same id as a string",
        r#"{"jsonrpc":"2.0","id":"1","method":"tools/call","params":{@,"name":"echo"}}"#,
        all("result"),
    )
    .given(Given::SlowCall),
];

const PARAMS: &[Row] = &[
    row(
        "an unknown tool",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{@,"name":"nope"}}"#,
        all("-32602"),
    ),
    row(
        "a tool without a name",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{@}}"#,
        all("-32602"),
    ),
    row(
        "a tool's name that is a number",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{@,"name":5}}"#,
        all("-32602"),
    ),
    row(
        "arguments that do not match the schema",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{@,"name":"add","arguments":{"a":"x"}}}"#,
        ["-32602", "-32602", "-32602", "tool error", "tool error"],
    ),
    row(
        "an unknown prompt",
        r#"{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{@,"name":"nope"}}"#,
        all("-32602"),
    ),
    row(
        "an unknown resource",
        r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{@,"uri":"note://none"}}"#,
        eras("-32002", "-32602"),
    ),
    row(
        "a resource without a URI",
        r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{@}}"#,
        all("-32602"),
    ),
    row(
        "an unknown cursor",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{@,"cursor":"x"}}"#,
        all("-32602"),
    ),
    row(
        "a cursor that is a number",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{@,"cursor":5}}"#,
        all("-32602"),
    ),
    row(
        "an unknown log level",
        r#"{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{@,"level":"loud"}}"#,
        eras("-32602", "-32601"),
    ),
    row(
        "no log level",
        r#"{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{@}}"#,
        eras("-32602", "-32601"),
    ),
    row(
        "no resource to subscribe to",
        r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{@}}"#,
        eras("-32602", "-32601"),
    ),
    row(
        "an unknown reference to complete",
        r#"{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{@,"ref":{"type":"ref/nope"},"argument":{"name":"a","value":""}}}"#,
        all("-32602"),
    ),
];

const STAMP: &[Row] = &[
    row(
        "`_meta` is a number",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":5}}"#,
        all("-32602"),
    ),
    row(
        "`_meta` is an array",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":[]}}"#,
        all("-32602"),
    ),
    row(
        "`_meta` is null",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":null}}"#,
        eras("result", "-32602"),
    ),
    row(
        "a progress token that is a fraction",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"progressToken":1.5}}}"#,
        all("-32602"),
    ),
    row(
        "no `_meta`",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#,
        eras("result", "-32602"),
    ),
    row(
        "no version",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/clientCapabilities":{}}}}"#,
        eras("result", "-32602"),
    ),
    row(
        "no capabilities",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#,
        all("-32602"),
    ),
    row(
        "an unknown version",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"v9","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
        all("-32022"),
    ),
    row(
        "a version that needs a handshake",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2025-11-25","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
        all("-32022"),
    ),
    row(
        "a version that is null",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":null,"io.modelcontextprotocol/clientCapabilities":{}}}}"#,
        all("-32602"),
    ),
    row(
        "capabilities that are an array",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":[]}}}"#,
        all("-32602"),
    ),
    row(
        "a client without a name",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{}}}}"#,
        all("-32602"),
    ),
    row(
        "an unknown log level",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"loud"}}}"#,
        all("-32602"),
    ),
];

const ASKING: &[Row] = &[
    row(
        "a forged state",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{@,"name":"echo","requestState":"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}}"#,
        eras("result", "-32602"),
    ),
    row(
        "an invalid state",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{@,"name":"echo","requestState":"!"}}"#,
        eras("result", "-32602"),
    ),
    row(
        "a state that is a number",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{@,"name":"echo","requestState":5}}"#,
        eras("result", "-32602"),
    ),
    row(
        "a state that is too long",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{@,"name":"echo","requestState":"⟨A×2000⟩"}}"#,
        eras("result", "-32602"),
    )
    .service("state-bytes=1000"),
    row(
        "a state for a method without states",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{@,"requestState":"!"}}"#,
        all("result"),
    ),
    row(
        "answers that are an array",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{@,"name":"echo","inputResponses":[]}}"#,
        eras("result", "-32602"),
    ),
    row(
        "an answer of another kind",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{@,"name":"ask","inputResponses":{"name":{"roots":[]}}}}"#,
        ["-32600", "-32600", "question", "question", "-32602"],
    ),
    row(
        "an answer to another question",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{@,"name":"ask","inputResponses":{"x":5}}}"#,
        ["-32600", "-32600", "question", "question", "question"],
    ),
    row(
        "a tool that needs a missing client capability",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{@,"name":"sample"}}"#,
        eras("-32600", "-32021"),
    ),
    row(
        "a subscription without a filter",
        r#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{@}}"#,
        eras("-32601", "-32602"),
    ),
    row(
        "a subscription to an array",
        r#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{@,"notifications":[]}}"#,
        eras("-32601", "-32602"),
    ),
    row(
        "a subscription to an unknown kind",
        r#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{@,"notifications":{"nope":true}}}"#,
        eras("-32601", "notification"),
    ),
];

const BATCHES: &[Row] = &[
    row("an empty batch", "[]", all(UNREAD)),
    row("a batch", r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, batch(UNREAD, "[`{}`]")),
    row(
        "a batch of notifications",
        r#"[{"jsonrpc":"2.0","method":"notifications/initialized"}]"#,
        batch(UNREAD, "nothing"),
    ),
    row(
        "a batch of unexpected responses",
        r#"[{"jsonrpc":"2.0","id":9,"result":{}}]"#,
        batch(UNREAD, "nothing"),
    ),
    row(
        "a batch with an element that is not a message",
        "[1,{}]",
        batch(UNREAD, "[-32600, no id, -32600, no id]"),
    ),
    row(
        "a batch in a batch",
        r#"[[{"jsonrpc":"2.0","id":1,"method":"ping"}]]"#,
        batch(UNREAD, "[-32600, no id]"),
    ),
    row(
        "a handshake in a batch",
        r#"[{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}]"#,
        batch(UNREAD, "[-32600]"),
    ),
    row(
        "a stateless request in a batch",
        r#"[{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}]"#,
        batch(UNREAD, "[-32600]"),
    ),
    row("a truncated batch", r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}"#, all(NOT_JSON)),
    row("a batch with trailing characters", r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}] x"#, all(NOT_JSON)),
    row("a batch that is too long", "[⟨1,×100⟩1]", all(UNREAD)),
];

const EARLY: &[Row] = &[
    row("a request", r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#, all("-32602")).given(Given::Nothing),
    row("an unknown method", r#"{"jsonrpc":"2.0","id":1,"method":"nope"}"#, all("-32602")).given(Given::Nothing),
    row("a ping", r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, all("`{}`")).given(Given::Nothing),
    row("a notification", r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, all("nothing")).given(Given::Nothing),
    row("a response", r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, all("nothing")).given(Given::Nothing),
    row("a batch", r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, all(UNREAD)).given(Given::Nothing),
    row("a handshake without params", r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#, all("-32602")).given(Given::Nothing),
    row(
        "a handshake whose version is a number",
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"capabilities":{},"clientInfo":{"name":"c","version":"0"}}}"#,
        all("-32602"),
    )
    .given(Given::Nothing),
    row(
        "a handshake without a client",
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#,
        all("-32602"),
    )
    .given(Given::Nothing),
    row(
        "a handshake with an unknown version",
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"v9","capabilities":{},"clientInfo":{"name":"c","version":"0"}}}"#,
        all("result"),
    )
    .given(Given::Nothing),
    row(
        "a handshake with a stateless server",
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"0"}}}"#,
        all("-32022"),
    )
    .given(Given::Nothing)
    .service("only=2026-07-28"),
];

const LIMITS: &[Row] = &[
    row(
        "a message that is too long",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{@,"name":"echo","arguments":{"text":"⟨a×5000⟩"}}}"#,
        all(UNREAD),
    )
    .service("message-bytes=1000"),
    row(
        "too many calls in flight",
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{@,"name":"slow"}}"#,
        all("-31503"),
    )
    .given(Given::SlowCall)
    .service("in-flight=1"),
    row(
        "too many open subscriptions",
        r#"{"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{@,"notifications":{}}}"#,
        eras("-32601", "-31503"),
    )
    .service("subscriptions=0"),
    row(
        "too many resources in a subscription",
        r#"{"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{@,"notifications":{"resourceSubscriptions":["a","b"]}}}"#,
        eras("-32601", "-32602"),
    )
    .service("watched=1"),
    row(
        "too many subscribed resources",
        r#"{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{@,"uri":"a"}}"#,
        eras("-31503", "-32601"),
    )
    .service("watched=0"),
    row(
        "a tool that exceeds the limit of rounds",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{@,"name":"ask"}}"#,
        ["-32600", "-32600", "-32603", "-32603", "-32603"],
    )
    .service("rounds=0"),
];
