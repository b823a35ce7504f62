use std::{env, error, fmt, path::PathBuf};

#[cfg(feature = "schemars")]
use schemars::JsonSchema;
use serde::Deserialize;

use crate::disk::read_file;

/// The most bytes of a file with a secret.
const MAX_BYTES: u64 = 64 << 10;

/// A text, or where a secret is.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[cfg_attr(feature = "schemars", derive(JsonSchema))]
#[serde(untagged)]
#[expect(clippy::exhaustive_enums, reason = "there is a text, or a source of one")]
pub enum SecretValue {
    /// A text that is not a secret.
    Text(String),
    /// A place outside of the file.
    Source(SecretSource),
}

/// The place of a secret.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[cfg_attr(feature = "schemars", derive(JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
#[non_exhaustive]
pub enum SecretSource {
    /// The name of an environment variable.
    Env(String),
    /// The name of an environment variable with a token: the text is `Bearer ` and the token.
    #[serde(rename = "bearer_env")]
    BearerEnv(String),
    /// The path of a file.
    File(PathBuf),
}

/// The reason why a secret cannot be read.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct SecretError {
    /// The fault, without the secret.
    pub message: String,
    /// The command line that shows or mends it.
    pub next: String,
}

impl fmt::Display for SecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: run `{}` where the server runs", self.message, self.next)
    }
}

impl error::Error for SecretError {}

impl SecretValue {
    /// Reads the text.
    ///
    /// # Errors
    ///
    /// The variable is not set, or the file cannot be read.
    pub fn read(&self) -> Result<String, SecretError> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::Source(SecretSource::Env(name)) => variable(name),
            Self::Source(SecretSource::BearerEnv(name)) => Ok(format!("Bearer {}", variable(name)?)),
            Self::Source(SecretSource::File(path)) => {
                let (_, text) = read_file(path, MAX_BYTES).map_err(|error| SecretError {
                    message: format!("the secret in `{}` cannot be read: {error}", path.display()),
                    next: format!("ls -l {}", path.display()),
                })?;
                Ok(text.trim_end_matches(['\r', '\n']).to_owned())
            }
        }
    }
}

fn variable(name: &str) -> Result<String, SecretError> {
    env::var(name).map_err(|_| SecretError {
        message: format!("the environment variable `{name}` is not set"),
        next: format!("export {name}=…"),
    })
}
