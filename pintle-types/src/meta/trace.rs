use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, de};

/// The trace that a message is part of, in the W3C formats.
#[expect(clippy::exhaustive_structs, reason = "three keys, fixed by the specification")]
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TraceContext {
    /// `traceparent`: the span that caused the message.
    pub parent: Option<TraceParent>,
    /// `tracestate`: vendor-specific trace data.
    pub state: Option<String>,
    /// `baggage`: application-defined properties.
    pub baggage: Option<String>,
}

/// A `traceparent` that has the form of the W3C Trace Context recommendation.
///
/// ```
/// use pintle_types::TraceParent;
///
/// let parent: TraceParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse()?;
/// assert_eq!(parent.span_id(), "00f067aa0ba902b7");
/// assert!(parent.is_sampled());
/// # Ok::<(), pintle_types::TraceParentError>(())
/// ```
#[derive(Clone, Debug, Eq, Hash, PartialEq, Serialize)]
#[serde(transparent)]
pub struct TraceParent(Box<str>);

impl TraceParent {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The trace: 32 hexadecimal digits.
    pub fn trace_id(&self) -> &str {
        &self.0[3..35]
    }

    /// The span: 16 hexadecimal digits.
    pub fn span_id(&self) -> &str {
        &self.0[36..52]
    }

    /// Whether the caller may have recorded the trace.
    pub fn is_sampled(&self) -> bool {
        // The last bit of the flags, which is the last bit of their last digit.
        matches!(self.0.as_bytes()[54], b'1' | b'3' | b'5' | b'7' | b'9' | b'b' | b'd' | b'f')
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for TraceParent {
    type Err = TraceParentError;

    fn from_str(text: &str) -> Result<Self, TraceParentError> {
        check(text.as_bytes()).map(|()| Self(text.into()))
    }
}

impl<'de> Deserialize<'de> for TraceParent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// The error of parsing a [`TraceParent`].
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TraceParentError {
    /// The text is not `version-trace-span-flags` in the right number of lower-case hexadecimal digits.
    Form,
    /// The version is `ff`, which is invalid.
    Version,
    /// The trace or the span is all zeros.
    Zero,
}

impl fmt::Display for TraceParentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Form => {
                "bad `traceparent`: expected 2, 32, 16 and 2 lower-case hexadecimal digits joined by hyphens"
            }
            Self::Version => "bad `traceparent`: version `ff` does not exist",
            Self::Zero => "bad `traceparent`: the trace or the span is all zeros",
        })
    }
}

impl std::error::Error for TraceParentError {}

fn check(text: &[u8]) -> Result<(), TraceParentError> {
    let Some((known, more)) = text.split_at_checked(55) else { return Err(TraceParentError::Form) };
    let hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let fits = known.iter().enumerate().all(|(at, byte)| match at {
        2 | 35 | 52 => *byte == b'-',
        _ => hex(byte),
    });
    // Later versions may go on, after another hyphen; version 00 may not.
    let ends = more.is_empty() || (!text.starts_with(b"00") && more[0] == b'-');
    if !fits || !ends || !text.is_ascii() {
        return Err(TraceParentError::Form);
    }
    if text.starts_with(b"ff") {
        return Err(TraceParentError::Version);
    }
    let zero = |part: &[u8]| part.iter().all(|byte| *byte == b'0');
    if zero(&known[3..35]) || zero(&known[36..52]) {
        return Err(TraceParentError::Zero);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_is_read() {
        for text in [
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00",
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0a-what-comes-later",
        ] {
            let parent: TraceParent = text.parse().unwrap();
            assert_eq!(parent.to_string(), text);
            assert_eq!(parent.trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
            assert!(!parent.is_sampled());
        }
    }

    #[test]
    fn what_is_no_parent_is_refused() {
        use TraceParentError::{Form, Version, Zero};
        for (text, error) in [
            ("", Form),
            ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7", Form),
            ("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", Form),
            ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more", Form),
            ("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.more", Form),
            ("00_4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7_01", Form),
            ("00-4bf92f3577b34da6a3ce929d0e0e473é-00f067aa0ba902b7-01", Form),
            ("ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", Version),
            ("00-00000000000000000000000000000000-00f067aa0ba902b7-01", Zero),
            ("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", Zero),
        ] {
            assert_eq!(text.parse::<TraceParent>(), Err(error), "{text}");
        }
    }
}
