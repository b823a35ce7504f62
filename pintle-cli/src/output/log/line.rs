use std::{
    fmt::{self, Write as _},
    time::SystemTime,
};

use clap::ValueEnum;
use pintle::message_log::timestamp::iso8601_micros;
use serde_json::{Map, Value};
use tracing::{
    Level,
    field::{Field, Visit},
};

use crate::output::printable::{Layout, Printable, escape_json};

/// The limit of bytes of a message, and of a value. What is longer is cut: peers may have chosen it.
const MAX_VALUE: usize = 2_048;
/// The limit of fields of an event.
const MAX_FIELDS: usize = 32;
/// The names that each line has.
const OWN: [&str; 4] = ["time", "level", "target", "message"];

/// The form of the lines of a log.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum LogFormat {
    #[default]
    Text,
    // An object for each line.
    Json,
}

/// A line of a log that is being made.
pub(super) struct LogLine<'a> {
    time: SystemTime,
    level: Level,
    target: &'a str,
    message: String,
    fields: Vec<(&'static str, Value)>,
}

impl<'a> LogLine<'a> {
    pub(super) fn new(time: SystemTime, level: Level, target: &'a str) -> Self {
        Self { time, level, target, message: String::new(), fields: Vec::new() }
    }

    pub(super) fn message(&mut self, message: fmt::Arguments<'_>) {
        self.message = cut(message);
    }

    /// Returns the line, with its end.
    pub(super) fn text(self, format: LogFormat) -> Vec<u8> {
        let time = iso8601_micros(self.time).unwrap_or_default();
        let line = match format {
            LogFormat::Json => {
                let own = [time, self.level.to_string(), self.target.to_owned(), self.message];
                let own = OWN.into_iter().zip(own.map(Value::String));
                let fields = self.fields.into_iter().filter(|(name, _)| !OWN.contains(name));
                let object: Map<_, _> =
                    own.chain(fields).map(|(name, value)| (name.to_owned(), value)).collect();
                escape_json(&Value::Object(object).to_string())
            }
            LogFormat::Text => {
                let Self { level, target, message, .. } = &self;
                let mut line = format!("{time} {level:>5} {target}: {message}");
                for (name, value) in &self.fields {
                    // Writing to a string does not fail.
                    let _ = write!(line, " {name}={value}");
                }
                Printable::new(&line, Layout::Line).to_string()
            }
        };
        (line + "\n").into_bytes()
    }

    fn field(&mut self, field: &Field, value: Value) {
        if self.fields.len() < MAX_FIELDS {
            self.fields.push((field.name(), value));
        }
    }
}

impl Visit for LogLine<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.message(format_args!("{value:?}")),
            _ => self.field(field, cut(format_args!("{value:?}")).into()),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => self.message(format_args!("{value}")),
            _ => self.field(field, cut(format_args!("{value}")).into()),
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.field(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.field(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.field(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.field(field, value.into());
    }
}

/// Formats a value, and ends at the limit: the rest is not formatted.
fn cut(value: fmt::Arguments<'_>) -> String {
    struct Bounded(String);

    impl fmt::Write for Bounded {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            for letter in text.chars() {
                if self.0.len() + letter.len_utf8() > MAX_VALUE {
                    return Err(fmt::Error);
                }
                self.0.push(letter);
            }
            Ok(())
        }
    }

    let mut bounded = Bounded(String::new());
    if bounded.write_fmt(value).is_err() {
        bounded.0.push('…');
    }
    bounded.0
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    fn line() -> LogLine<'static> {
        let mut line =
            LogLine::new(UNIX_EPOCH + Duration::from_millis(1_500), Level::WARN, "pintle::service");
        line.message(format_args!("`a\u{1b}[2J\nb` cannot be connected: \u{202e}x"));
        line.fields.push(("status", 503.into()));
        line.fields.push(("error", "a \"b\"\r\nc".into()));
        line.fields.push(("level", "forged".into()));
        line
    }

    fn text(format: LogFormat) -> String {
        String::from_utf8(line().text(format)).unwrap()
    }

    #[test]
    fn a_peer_writes_neither_a_second_line_nor_another_field() {
        assert_eq!(
            text(LogFormat::Text),
            "1970-01-01T00:00:01.500000Z  WARN pintle::service: `a\\u{1b}[2J\\nb` cannot be connected: \\u{202e}x status=503 \
             error=\"a \\\"b\\\"\\r\\nc\" level=\"forged\"\n"
        );
        let json = text(LogFormat::Json);
        assert!(
            json.ends_with("}\n") && json.matches('\n').count() == 1 && !json.contains('\u{202e}'),
            "{json}"
        );
        let value: Value = serde_json::from_str(&json).unwrap();
        assert_eq!((&value["level"], &value["status"]), (&"WARN".into(), &503.into()));
        assert_eq!(value["message"], "`a\u{1b}[2J\nb` cannot be connected: \u{202e}x");
        assert_eq!(value["error"], "a \"b\"\r\nc");
    }

    #[test]
    fn what_a_peer_has_chosen_is_cut_and_the_rest_is_not_formatted() {
        /// It would be formatted for ever.
        struct Endless;

        impl fmt::Display for Endless {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                loop {
                    f.write_str("äö")?;
                }
            }
        }

        let text = cut(format_args!("x{Endless}"));
        assert!(text.starts_with("xäöäö") && text.ends_with('…') && text.len() <= MAX_VALUE + 3, "{text}");
    }
}
