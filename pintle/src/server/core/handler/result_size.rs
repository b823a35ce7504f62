use std::fmt;

use pintle_types::RawObject;

use crate::server::Cx;

/// Returns the printed result, unless it exceeds the size limit.
pub(crate) fn check(cx: &Cx, printed: Result<RawObject, serde_json::Error>) -> Result<RawObject, PrintError> {
    let limit = cx.snapshot().settings.calls.result_bytes;
    let printed = printed.map_err(|error| PrintError::Failed(error.to_string()))?;
    match printed.as_str().len() {
        bytes if bytes > limit => Err(PrintError::TooLarge { bytes, limit }),
        _ => Ok(printed),
    }
}

/// The reason why a result was not printed.
pub(crate) enum PrintError {
    TooLarge { bytes: usize, limit: usize },
    Failed(String),
}

impl fmt::Display for PrintError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { bytes, limit } => {
                write!(f, "the result has {bytes} bytes and may have at most {limit}: ask for less")
            }
            Self::Failed(reason) => write!(f, "the result cannot be printed: {reason}"),
        }
    }
}
