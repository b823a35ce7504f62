use std::fmt;

use pintle_types::RawObject;

use crate::server::Cx;

/// A result as it was printed, unless it is larger than a result may be.
pub(crate) fn checked(
    cx: &Cx,
    printed: Result<RawObject, serde_json::Error>,
) -> Result<RawObject, Unprinted> {
    let most = cx.state().settings.result_bytes;
    let printed = printed.map_err(|error| Unprinted::Failed(error.to_string()))?;
    match printed.as_str().len() {
        bytes if bytes > most => Err(Unprinted::TooLarge { bytes, most }),
        _ => Ok(printed),
    }
}

/// Why there is no printed result.
pub(crate) enum Unprinted {
    TooLarge { bytes: usize, most: usize },
    Failed(String),
}

impl fmt::Display for Unprinted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { bytes, most } => {
                write!(f, "the result has {bytes} bytes and may have at most {most}: ask for less")
            }
            Self::Failed(said) => write!(f, "the result cannot be printed: {said}"),
        }
    }
}
