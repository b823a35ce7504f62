//! Plays all of `tests/transcripts`, and holds what was played against the tables of the specification's digest.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::script::{Script, Seen, scripts};

const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

/// Digest 1.1: requests from the client. A dash is a revision that must refuse it. Tasks are refused everywhere: the
/// demo does not offer them.
const REQUESTS: &[(&str, &str)] = &[
    ("initialize", "++++-"),
    ("ping", "++++-"),
    ("server/discover", "----+"),
    ("tools/list", "+++++"),
    ("tools/call", "+++++"),
    ("resources/list", "+++++"),
    ("resources/templates/list", "+++++"),
    ("resources/read", "+++++"),
    ("resources/subscribe", "++++-"),
    ("resources/unsubscribe", "++++-"),
    ("subscriptions/listen", "----+"),
    ("prompts/list", "+++++"),
    ("prompts/get", "+++++"),
    ("completion/complete", "+++++"),
    ("logging/setLevel", "++++-"),
    ("tasks/get", "-----"),
    ("tasks/cancel", "-----"),
    ("tasks/result", "-----"),
    ("tasks/list", "-----"),
    ("tasks/update", "-----"),
];

/// Digest 1.2 and 1.3: what the server says by itself. A dash is a revision in which it never does.
const SERVER_SENDS: &[(&str, &str)] = &[
    ("ping", "++++-"),
    ("sampling/createMessage", "+++++"),
    ("roots/list", "+++++"),
    ("elicitation/create", "--+++"),
    ("notifications/cancelled", "+++++"),
    ("notifications/progress", "+++++"),
    ("notifications/message", "+++++"),
    ("notifications/resources/updated", "+++++"),
    ("notifications/resources/list_changed", "+++++"),
    ("notifications/tools/list_changed", "+++++"),
    ("notifications/prompts/list_changed", "+++++"),
    ("notifications/elicitation/complete", "---+-"),
    ("notifications/subscriptions/acknowledged", "----+"),
    ("notifications/tasks/status", "-----"),
];

/// Digest 1.3: what the client tells. All of it is heard in all revisions, and none of it answered.
const CLIENT_NOTIFIES: &[&str] = &[
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/progress",
    "notifications/roots/list_changed",
    "notifications/tasks/status",
];

/// Digest 1.7: the server's errors. A dash is a revision in which the code never comes. -32020 is HTTP's.
const CODES: &[(i32, &str)] = &[
    (-32700, "+++++"),
    (-32600, "+++++"),
    (-32601, "+++++"),
    (-32602, "+++++"),
    (-32603, "+++++"),
    (-32002, "++++-"),
    (-32042, "---+-"),
    (-32021, "----+"),
    (-32022, "----+"),
    (-32020, "-----"),
    // Ours.
    (-31503, "+++++"),
];

/// The 25 points of the digest's part 8, and where they are tested. Those of a server without HTTP are each named in
/// a transcript.
const POINTS: [(u32, Tested); 25] = [
    (1, Tested::Here),
    (2, Tested::Http),
    (3, Tested::Http),
    (4, Tested::Here),
    (5, Tested::Client),
    (6, Tested::Client),
    (7, Tested::Here),
    (8, Tested::Here),
    (9, Tested::Here),
    (10, Tested::Here),
    (11, Tested::Here),
    (12, Tested::Http),
    (13, Tested::Http),
    (14, Tested::Http),
    (15, Tested::Here),
    (16, Tested::Here),
    (17, Tested::Here),
    (18, Tested::Here),
    (19, Tested::Here),
    (20, Tested::Here),
    (21, Tested::Here),
    (22, Tested::Here),
    (23, Tested::Http),
    (24, Tested::Here),
    (25, Tested::OAuth),
];

#[derive(PartialEq)]
enum Tested {
    Here,
    /// With the rules of HTTP.
    Http,
    /// With the client's engine.
    Client,
    /// Where OAuth is.
    OAuth,
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn all() -> Vec<Script> {
    let read = |file: &PathBuf| {
        scripts(&file.file_name().unwrap().to_string_lossy(), &fs::read_to_string(file).unwrap())
    };
    files().iter().flat_map(read).collect()
}

#[test]
fn every_transcript_plays_as_written_and_together_they_cover_the_protocol() {
    let scripts = all();
    let mut seen = Seen::new();
    let wrong: Vec<_> = scripts.iter().flat_map(|script| script.play(&mut seen)).collect();
    assert!(wrong.is_empty(), "{} went wrong\n{}", wrong.len(), wrong.join("\n"));
    assert!(scripts.len() >= 80, "only {} transcripts", scripts.len());

    let mut gaps = Vec::new();
    let mut check = |holds: bool, what: String| {
        if !holds {
            gaps.push(what);
        }
    };
    for (revision, at) in REVISIONS.iter().zip(0..) {
        let has = |row: &str| row.as_bytes()[at] == b'+';
        for (method, row) in REQUESTS {
            // A subscription is answered when it ends.
            let wanted = if has(row) {
                format!("{revision} C {method} ok")
            } else {
                format!("{revision} C {method} -32601")
            };
            check(seen.contains(&wanted), format!("never seen: {wanted}"));
        }
        for (method, row) in SERVER_SENDS {
            let message = format!("{revision} S {method}");
            check(seen.contains(&message) == has(row), format!("{message}: has({})", has(row)));
        }
        for method in CLIENT_NOTIFIES {
            let notified = format!("{revision} C {method}");
            check(seen.contains(&notified), format!("never seen: {notified}"));
        }
        for (code, row) in CODES {
            let message = format!("{revision} ! {code}");
            check(seen.contains(&message) == has(row), format!("{message}: has({})", has(row)));
        }
    }
    // Digest 1.7: what JSON-RPC and MCP keep for themselves has no other codes.
    for message in &seen {
        let code = message.rsplit_once("! ").and_then(|(_, code)| code.parse::<i32>().ok());
        let kept = code.filter(|code| (-32768..=-32000).contains(code));
        check(
            kept.is_none_or(|kept| CODES.iter().any(|(known, _)| *known == kept)),
            format!("nobody knows: {message}"),
        );
    }
    assert!(gaps.is_empty(), "{}", gaps.join("\n"));
}

#[test]
fn requests_that_stand_alone_need_no_stream() {
    let played: Vec<_> = all().iter().filter_map(Script::play_apart).collect();
    assert!(played.len() >= 30, "only {} transcripts", played.len());
    let wrong: Vec<_> = played.into_iter().filter_map(Result::err).collect();
    assert!(wrong.is_empty(), "{} went wrong\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_points_that_are_often_got_wrong_are_each_in_a_transcript() {
    let text: String = files().iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let remarks =
        text.lines().filter(|line| line.starts_with('#')).filter_map(|line| line.split_once("oint"));
    // "Point 7." or "Points 1 and 7, …".
    let lists = remarks.filter_map(|(_, rest)| rest.split([',', '.', ':']).next());
    let named: Vec<u32> =
        lists.flat_map(|list| list.split_whitespace()).filter_map(|word| word.parse().ok()).collect();
    for (point, _) in POINTS.iter().filter(|(_, tested)| *tested == Tested::Here) {
        assert!(named.contains(point), "no transcript names point {point}");
    }
}
