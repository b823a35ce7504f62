//! What the client says.

use std::fmt::Write as _;

use pintle_types::RequestId;

use super::course::Course;

/// One line of the client's, well formed or nearly so.
pub(super) fn line(asked: &[RequestId], states: &[String], course: &mut Course<'_>) -> String {
    let mut line = match course.below(10) {
        0 => {
            let at = course.below(asked.len() + 1);
            answer(asked.get(at).unwrap_or(&RequestId::Number(99)), course)
        }
        1 => {
            let id = course.of(IDS);
            let params =
                course.of(&["{\"requestId\":ID}", "{\"requestId\":ID,\"reason\":\"late\"}", "{}", "5"]);
            let params = params.replace("ID", id);
            format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}"#)
        }
        2 => format!(r#"{{"jsonrpc":"2.0","method":"{}"}}"#, course.of(NOTIFICATIONS)),
        _ => request(states, course),
    };
    if course.below(12) == 11 && !line.is_empty() {
        // Somewhere a byte is another one, or the rest is missing.
        let at = course.below(256) % line.len();
        match (course.below(3), line.is_char_boundary(at) && line.is_char_boundary(at + 1)) {
            (0, true) => line.truncate(at),
            (1, true) => drop(line.remove(at)),
            (_, true) => line.replace_range(at..=at, course.of(&["\"", "{", "}", "\\", "0", " ", "\n", "é"])),
            (_, false) => {}
        }
    }
    line
}

fn request(states: &[String], course: &mut Course<'_>) -> String {
    let (id, method) = (course.of(IDS), course.of(METHODS));
    let mut params = String::new();
    let mut member = |name: &str, value: &str| {
        let comma = if params.is_empty() { "" } else { "," };
        let _ = write!(params, "{comma}\"{name}\":{value}");
    };
    match course.below(8) {
        0..3 => {
            let revision = course.of(VERSIONS);
            let capabilities = course.of(CAPABILITIES);
            let more = course.of(&[
                "",
                "",
                r#","progressToken":1"#,
                r#","io.modelcontextprotocol/logLevel":"info""#,
            ]);
            let prefix = "io.modelcontextprotocol";
            let meta = format!(
                r#"{{"{prefix}/protocolVersion":{revision},"{prefix}/clientCapabilities":{capabilities}{more}}}"#
            );
            member("_meta", &meta);
        }
        3 => member(
            "_meta",
            course.of(&[r#"{"progressToken":"t"}"#, "{}", "5", "null", r#"{"progressToken":1.5}"#]),
        ),
        _ => {}
    }
    match method {
        "initialize" => {
            member("protocolVersion", course.of(VERSIONS));
            member("capabilities", course.of(CAPABILITIES));
            member("clientInfo", r#"{"name":"c","version":"1"}"#);
        }
        "tools/call" | "prompts/get" | "acme/own" => {
            member("name", course.of(&["\"a\"", "\"b\"", "7"]));
            member("arguments", course.of(&["{}", "{\"x\":1}", "[]", "{\"x\":\n1}"]));
        }
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => member("uri", course.of(URIS)),
        "logging/setLevel" => member("level", course.of(&["\"debug\"", "\"error\"", "\"loud\""])),
        "subscriptions/listen" => {
            let uris: Vec<_> = (0..course.below(5)).map(|_| course.of(URIS)).collect();
            let lists = course.of(&[r#""toolsListChanged":true"#, r#""resourcesListChanged":true,"x":1"#]);
            member("notifications", &format!("{{{lists},\"resourceSubscriptions\":[{}]}}", uris.join(",")));
        }
        _ => {}
    }
    if course.below(3) == 0 {
        let mut answers = Vec::new();
        for key in &KEYS[course.below(KEYS.len())..] {
            answers.push(format!("{key:?}:{}", course.of(ANSWERS)));
        }
        member("inputResponses", &format!("{{{}}}", answers.join(",")));
    }
    if course.below(3) == 0 && !states.is_empty() {
        let mut state = states[course.below(states.len())].clone();
        if course.below(4) == 3 {
            state.push('A');
        }
        member("requestState", &format!("\"{state}\""));
    }
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}}}}}"#)
}

/// An answer to a question of the server's.
pub(super) fn answer(id: &RequestId, course: &mut Course<'_>) -> String {
    let outcome = match course.below(4) {
        0 => r#""error":{"code":-1,"message":"no"}"#.to_owned(),
        _ => format!(r#""result":{}"#, course.of(ANSWERS)),
    };
    format!(r#"{{"jsonrpc":"2.0","id":{},{outcome}}}"#, printed(id))
}

/// The start of a session, with a client that can be asked anything.
pub(super) fn initialize(course: &mut Course<'_>) -> String {
    let (version, capabilities) = (course.of(VERSIONS), CAPABILITIES[1]);
    let client = r#"{"name":"c","version":"1"}"#;
    format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":{version},"capabilities":{capabilities},"clientInfo":{client}}}}}"#
    )
}

fn printed(id: &RequestId) -> String {
    serde_json::to_string(id).expect("ids print")
}

const IDS: &[&str] = &["1", "2", "3", "\"1\"", "\"a\\n\"", "-9", "4", "5", "6", "7"];
/// The keys of questions.
pub(super) const KEYS: &[&str] = &["k", "l\"", "m\\"];
/// Resources, as JSON.
pub(super) const URIS: &[&str] = &["\"file:///a\"", "\"file:///a/b\"", "\"file:///c/\"", "\"x\"", "\"\""];
const VERSIONS: &[&str] = &[
    "\"2026-07-28\"",
    "\"2025-11-25\"",
    "\"2025-03-26\"",
    "\"2025-06-18\"",
    "\"2024-11-05\"",
    "\"2026-07-28\"",
    "\"1999-01-01\"",
    "null",
];
const CAPABILITIES: &[&str] = &[
    "{}",
    r#"{"roots":{},"elicitation":{"form":{},"url":{}},"sampling":{}}"#,
    r#"{"elicitation":{}}"#,
    r#"{"roots":{}}"#,
    "5",
];
const METHODS: &[&str] = &[
    "initialize",
    "tools/call",
    "ping",
    "tools/call",
    "subscriptions/listen",
    "resources/read",
    "server/discover",
    "tools/list",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
    "prompts/get",
    "completion/complete",
    "acme/own",
    "tasks/get",
    "nothing\\n",
];
const NOTIFICATIONS: &[&str] = &["notifications/initialized", "notifications/progress", "x"];
const ANSWERS: &[&str] = &[
    r#"{"action":"accept","content":{"a":1}}"#,
    r#"{"action":"decline"}"#,
    r#"{"roots":[{"uri":"file:///r"}]}"#,
    "{}",
    "{\"action\":\n\"cancel\"}",
    r#"{"resultType":"complete","roots":[],"_meta":{}}"#,
];
