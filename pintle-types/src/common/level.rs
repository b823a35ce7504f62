use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// The severity of a log message, in ascending order.
///
/// ```
/// use pintle_types::schema::LoggingLevel;
///
/// let asked: LoggingLevel = "warning".parse()?;
/// assert!(LoggingLevel::Error >= asked && LoggingLevel::Info < asked);
/// # Ok::<(), pintle_types::schema::UnknownLevel>(())
/// ```
#[expect(clippy::exhaustive_enums, reason = "the eight of syslog, RFC 5424")]
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LoggingLevel {
    /// Debugging details.
    Debug,
    /// Informational messages.
    Info,
    /// Normal but significant events.
    Notice,
    /// Warning conditions.
    Warning,
    /// Error conditions.
    Error,
    /// Critical conditions: a component has failed.
    Critical,
    /// Action must be taken immediately.
    Alert,
    /// The system is unusable.
    Emergency,
}

impl LoggingLevel {
    /// All levels, in ascending order of severity.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// Returns the word used in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }
}

impl fmt::Display for LoggingLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for LoggingLevel {
    type Err = UnknownLevel;

    fn from_str(text: &str) -> Result<Self, UnknownLevel> {
        Self::ALL
            .into_iter()
            .find(|level| level.as_str() == text)
            .ok_or_else(|| UnknownLevel { level: text.to_owned() })
    }
}

/// The error of parsing a word that is not a [`LoggingLevel`].
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnknownLevel {
    /// The word.
    pub level: String,
}

impl fmt::Display for UnknownLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no such log level: `{}`; expected one of", self.level)?;
        LoggingLevel::ALL.iter().try_for_each(|level| write!(f, " `{level}`"))
    }
}

impl std::error::Error for UnknownLevel {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_ordered_and_come_back() {
        assert!(LoggingLevel::ALL.is_sorted());
        for level in LoggingLevel::ALL {
            assert_eq!(level.to_string().parse(), Ok(level));
            assert_eq!(serde_json::to_value(level).unwrap(), level.as_str());
        }
    }

    #[test]
    fn an_unknown_level_is_named() {
        let error = "loud".parse::<LoggingLevel>().unwrap_err().to_string();
        assert!(error.starts_with("no such log level: `loud`; expected one of `debug` `info`"), "{error}");
        let error = serde_json::from_str::<LoggingLevel>(r#""loud""#).unwrap_err().to_string();
        assert!(error.starts_with("unknown variant `loud`, expected one of `debug`"), "{error}");
    }
}
