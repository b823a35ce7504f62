//! Records for people.

use std::borrow::Cow;

use pintle::types::RawValue;
use serde::Deserialize;

use super::RecordedLine;
use crate::output::{Text, Tone};

/// The number of bytes of a message that are printed.
const SHOWN: usize = 4 << 10;

/// The members of a message.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// Formats a line of a recording: `12:03:04.123 → tools/call 4 {"name": …}`, and below the headers of HTTP.
pub(super) fn text(line: &str) -> Text {
    let mut text = Text::new();
    let Ok(record) = serde_json::from_str::<RecordedLine>(line) else {
        text.line(shortened(line));
        return text;
    };
    if let Some(dropped) = record.dropped {
        text.tone(Tone::Error, format_args!("{dropped} messages were dropped: the output is too slow")).end();
        return text;
    }
    // Without the date: `2026-11-16T12:03:04.123456Z`.
    let time = record.time.as_deref().and_then(|time| time.get(11..23)).unwrap_or_default();
    let (arrow, tone) = if record.is_by_client() { ("→", Tone::Out) } else { ("←", Tone::In) };
    text.tone(Tone::Faint, time).add(" ").tone(tone, arrow).add(" ");
    if let Some(http) = &record.http {
        match http.status {
            None => text.tone(Tone::Faint, format_args!("{} {}", http.method, http.uri)),
            Some(_) if http.event => text.tone(Tone::Faint, "event"),
            Some(status) => text.tone(Tone::Faint, status),
        };
        text.tone(Tone::Faint, format_args!(" #{} ", http.exchange));
    }
    match (&record.message, &record.text) {
        (Some(message), _) => add_message(&mut text, message.get()),
        (None, Some(plain)) => drop(text.add(shortened(plain))),
        (None, None) if record.oversized => drop(text.tone(Tone::Error, "(above the size limit)")),
        (None, None) => drop(text.tone(Tone::Faint, "(no content)")),
    }
    text.end();
    for (name, value) in record.http.iter().flat_map(|http| &http.headers) {
        text.tone(Tone::Faint, format_args!("    {name}: {value}")).end();
    }
    text
}

fn add_message(text: &mut Text, message: &str) {
    let Ok(envelope) = serde_json::from_str::<Envelope<'_>>(message) else {
        text.add(shortened(message));
        return;
    };
    let Envelope { id, method, params, result, error } = envelope;
    match (&method, error) {
        (Some(method), _) => text.tone(Tone::Method, method),
        (None, Some(_)) => text.tone(Tone::Error, "error"),
        (None, None) => text.tone(Tone::Code, "result"),
    };
    if let Some(id) = id {
        text.add(" ").tone(Tone::Faint, id.get());
    }
    if let Some(body) = params.or(result).or(error) {
        text.add(" ").add(shortened(body.get()));
    }
}

/// Returns the start of a long text, and how much is left out.
fn shortened(text: &str) -> Cow<'_, str> {
    let end = (0..=SHOWN.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    match text.len() - end {
        0 => Cow::Borrowed(text),
        more => Cow::Owned(format!("{}… ({more} bytes more)", &text[..end])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_a_line_and_its_headers_are_below() {
        let time = r#""time":"2026-11-16T12:03:04.123456Z","#;
        for (line, shown) in [
            (
                format!(
                    r#"{{{time}"direction":"out","message":{{"id":4,"method":"tools/call","params":{{"a":"\u001b"}}}}}}"#
                ),
                "12:03:04.123 → tools/call 4 {\"a\":\"\\u001b\"}\n",
            ),
            (
                format!(
                    r#"{{{time}"direction":"in","http":{{"exchange":2,"method":"POST","uri":"/mcp","status":200,"headers":[["a","b\n"]]}},"message":{{"id":4,"result":{{}}}}}}"#
                ),
                "12:03:04.123 ← 200 #2 result 4 {}\n    a: b\\n\n",
            ),
            (
                r#"{"direction":"in","http":{"exchange":2,"method":"POST","uri":"/mcp","status":200,"event":true},"message":{"id":4,"error":{}}}"#
                    .to_owned(),
                " ← event #2 error 4 {}\n",
            ),
            (r#"{"direction":"out","oversized":true}"#.to_owned(), " → (above the size limit)\n"),
            (r#"{"direction":"out","text":"a\nb"}"#.to_owned(), " → a\\nb\n"),
            (r#"{"direction":"out","message":[1]}"#.to_owned(), " → [1]\n"),
            (r#"{"dropped":3}"#.to_owned(), "3 messages were dropped: the output is too slow\n"),
            ("no JSON".to_owned(), "no JSON\n"),
        ] {
            assert_eq!(text(&line).rendered_plain(), shown);
        }
        let long = shortened(&"é".repeat(SHOWN)).into_owned();
        assert!(long.ends_with("é… (4096 bytes more)"), "{long}");
    }
}
