//! Conversations with the command: each line after `$` is typed, and what follows is printed.
//!
//! To add one, write its line into a file of `transcripts/` and run the tests with `PINTLE_BLESS=1`. Lines of standard error begin
//! with `!`, and an exit code other than 0 is in brackets.

use std::fmt::Write as _;

use crate::support::{Printed, snapshot, typed, words};

macro_rules! transcripts {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            check(concat!("transcripts/", stringify!($name), ".txt"));
        }
    )*};
}

transcripts! { call complete errors help info ls ping prompt raw read traffic }

fn check(file: &str) {
    let expected = std::fs::read_to_string(format!("tests/it/{file}")).unwrap();
    let mut found = String::new();
    for line in expected.lines().filter(|line| line.starts_with("$ ")) {
        writeln!(found, "{line}").unwrap();
        found.push_str(&transcribe(&line_words(line)));
        found.push('\n');
    }
    snapshot::assert_file(&found, file);
}

/// Returns the words after `$ pintle`.
pub(crate) fn line_words(line: &str) -> Vec<String> {
    words(line.strip_prefix("$ pintle").unwrap().trim_start())
}

fn transcribe(words: &[String]) -> String {
    let Printed { code, stdout, stderr } = typed(words);
    let mut text = without_tokens(&masked(&stdout));
    without_tokens(&stderr).lines().for_each(|line| writeln!(text, "! {line}").unwrap());
    if code != Some(0) {
        writeln!(text, "[{}]", code.map_or("killed".to_owned(), |code| code.to_string())).unwrap();
    }
    text
}

/// Replaces the tokens of suspended calls, which differ.
pub(crate) fn without_tokens(text: &str) -> String {
    let mut parts = text.split("pintle resume ");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str("pintle resume ");
        let is_token = part.bytes().take_while(u8::is_ascii_alphanumeric).count() == 12;
        out.push_str(if is_token { "TOKEN" } else { "" });
        out.push_str(&part[if is_token { 12 } else { 0 }..]);
    }
    out
}

/// Replaces times, which differ.
pub(crate) fn masked(text: &str) -> String {
    let starts = ["latency ", "answered in ", "{\"milliseconds\":"];
    let line = |line: &str| match starts.iter().find(|start| line.starts_with(**start)) {
        Some(start) => format!("{start}…\n"),
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}
