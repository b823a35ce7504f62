use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, de};

/// The id of a request: a string or an integer, kept unchanged.
///
/// `1` and `"1"` are different ids; [`as_number`](Self::as_number) is for those who are lenient about that. A progress token
/// has the same shape.
#[expect(clippy::exhaustive_enums, reason = "JSON-RPC has these two and will have no third")]
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(untagged)]
pub enum RequestId {
    /// An integer. A fraction is not an id.
    Number(i64),
    /// A string, compared byte by byte.
    String(Box<str>),
}

impl RequestId {
    /// Returns the integer, also of a string in decimal form. Some peers answer request `7` as `"7"`.
    ///
    /// ```
    /// use pintle_types::RequestId;
    ///
    /// assert_eq!(RequestId::from("7").as_number(), Some(7));
    /// assert_eq!(RequestId::from("07").as_number(), None);
    /// ```
    pub fn as_number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::String(text) => {
                let is_decimal = !text.starts_with(['0', '+', '-']) || &**text == "0";
                text.parse().ok().filter(|_| is_decimal)
            }
        }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            // Quoted, so that `92` and `"92"` look different in a log.
            Self::String(string) => write!(f, "{string:?}"),
        }
    }
}

impl From<i64> for RequestId {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for RequestId {
    fn from(string: &str) -> Self {
        Self::String(string.into())
    }
}

impl From<String> for RequestId {
    fn from(string: String) -> Self {
        Self::String(string.into())
    }
}

// By hand: `untagged` would buffer the value and answer with "did not match any variant".
impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RequestIdVisitor)
    }
}

struct RequestIdVisitor;

impl de::Visitor<'_> for RequestIdVisitor {
    type Value = RequestId;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a 64-bit integer")
    }

    fn visit_i64<E>(self, number: i64) -> Result<RequestId, E> {
        Ok(RequestId::Number(number))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<RequestId, E> {
        i64::try_from(number)
            .map(RequestId::Number)
            .map_err(|_| E::invalid_value(de::Unexpected::Unsigned(number), &self))
    }

    fn visit_str<E>(self, string: &str) -> Result<RequestId, E> {
        Ok(RequestId::String(string.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_comes_back_as_it_was() {
        for text in ["1", "-7", "9223372036854775807", r#""1""#, r#""""#, r#""snow ❄ \" \\""#] {
            let id: RequestId = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&id).unwrap(), text);
        }
        assert_ne!(RequestId::from(1), RequestId::from("1"));
    }

    #[test]
    fn what_is_no_id_is_named() {
        for (text, message) in [
            ("1.5", "invalid type: floating point `1.5`, expected a string or a 64-bit integer"),
            ("null", "invalid type: null, expected a string or a 64-bit integer"),
            ("18446744073709551615", "invalid value: integer `18446744073709551615`"),
            ("{}", "invalid type: map"),
        ] {
            let error = serde_json::from_str::<RequestId>(text).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
