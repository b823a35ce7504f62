//! What each bad input gets: `docs/replies.md` is this table, and the table is a test.
//!
//! `PINTLE_BLESS=1 cargo test -p pintle-proto --test it` writes the page anew.

mod rows;
mod table;

use std::{fmt::Write as _, fs, path::Path};

use serde_json::{Value, json};

use self::{
    rows::SECTIONS,
    table::{Given, Row},
};
use crate::stream::{Stream, service};

const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}"#;
const TITLE: &str = "# Replies to bad input

Each row is sent to a server that offers everything, as a client of each revision: after a handshake in the first four
revisions, and with the required `_meta` (omitted below) in the last. A number is an error code. *No id* means that the
reply has no id, because that of the request could not be read. *Nothing* means that no reply is sent. In the examples,
`\\xNN` is a byte and `⟨x×n⟩` is x repeated n times. A test compares the server with this page and generates it.

All rows were sent on one pipe. On a pipe, a second `initialize` renegotiates the revision, because gateways let several
clients share a pipe: calls in flight are answered in the old revision, subscriptions and the log level are kept, and
later requests use the new revision. Over HTTP, `initialize` opens another session and does not affect existing ones. At
the two endpoints of the oldest revision, where a stream is a session, a second `initialize` on the same stream is
refused with -32600.
";

#[test]
fn every_bad_input_gets_the_reply_that_the_page_promises() {
    let mut page = TITLE.to_owned();
    let (mut rows, mut wrong) = (0, Vec::new());
    for (title, section) in SECTIONS {
        writeln!(page, "\n## {title}\n").unwrap();
        writeln!(page, "| input | example | {} | message |", REVISIONS.join(" | ")).unwrap();
        writeln!(page, "|---|---|{}---|", "---|".repeat(REVISIONS.len())).unwrap();
        for row in *section {
            rows += 1;
            let mut words = String::new();
            for (revision, expected) in REVISIONS.iter().zip(row.replies) {
                let (came, text) = reply(row, revision);
                if came != expected {
                    wrong
                        .push(format!("{} in {revision}: expected {expected}, came {came} {text}", row.what));
                }
                if !text.is_empty() {
                    words = text;
                }
            }
            let cells = row.replies.join(" | ");
            writeln!(
                page,
                "| {} | {} | {cells} | {} |",
                row.what,
                shown(row.input),
                words.replace('|', "\\|")
            )
            .unwrap();
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(rows >= 60, "only {rows} rows");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/replies.md");
    if std::env::var_os("PINTLE_BLESS").is_some() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, &page).unwrap();
    }
    let written = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        written == page,
        "docs/replies.md is out of date: run this test with PINTLE_BLESS=1 and look at the change"
    );
}

/// What a server says to a row's input in short, and the words of its error.
fn reply(row: &Row, revision: &str) -> (String, String) {
    let stateless = revision == REVISIONS[4];
    let mut stream = Stream::new(service(row.service));
    let filled = |input: &str| {
        if stateless { input.replace('@', META) } else { input.replace("@,", "").replace('@', "") }
    };
    if row.given != Given::Nothing && !stateless {
        let opening = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "protocolVersion": revision,
            "capabilities": { "elicitation": {} }, "clientInfo": { "name": "c", "version": "0" } } });
        stream.read(opening.to_string().as_bytes());
        stream.read(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    }
    if row.given == Given::SlowCall {
        let slow = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{@,"name":"slow"}}"#;
        stream.read(filled(slow).as_bytes());
    }
    stream.written.clear();
    stream.read(&table::bytes(&filled(row.input)));
    let came: Vec<Value> =
        stream.written.drain(..).map(|bytes| serde_json::from_slice(&bytes).unwrap()).collect();
    // Whatever it was, the conversation goes on.
    stream.read(
        filled(r#"{"jsonrpc":"2.0","id":"after","method":"tools/call","params":{@,"name":"echo"}}"#)
            .as_bytes(),
    );
    assert_eq!(stream.written.len(), 1, "nothing came after {}", row.what);
    let words = came.iter().map(words).find(|words| !words.is_empty()).unwrap_or_default();
    let short: Vec<_> = came.iter().map(short).collect();
    (if short.is_empty() { "nothing".to_owned() } else { short.join(", ") }, words)
}

fn short(message: &Value) -> String {
    if let Some(several) = message.as_array() {
        return format!("[{}]", several.iter().map(short).collect::<Vec<_>>().join(", "));
    }
    let result = &message["result"];
    match message["error"]["code"].as_i64() {
        Some(code) if message.get("id").is_none() => format!("{code}, no id"),
        Some(code) => code.to_string(),
        None if result["isError"] == true => "tool error".to_owned(),
        None if result["resultType"] == "input_required" => "question".to_owned(),
        None if *result == json!({}) => "`{}`".to_owned(),
        None if result.is_object() => "result".to_owned(),
        None if message.get("id").is_some() => "question".to_owned(),
        None => "notification".to_owned(),
    }
}

fn words(message: &Value) -> String {
    let one = message.as_array().and_then(|several| several.iter().find(|one| one.get("error").is_some()));
    let error = &one.unwrap_or(message)["error"];
    error["message"].as_str().unwrap_or_default().to_owned()
}

/// The input as the page shows it.
fn shown(input: &str) -> String {
    let input = input.replace("@,", "").replace('@', "").replace('|', "\\|");
    if input.is_empty() { "*an empty line*".to_owned() } else { format!("`{input}`") }
}
