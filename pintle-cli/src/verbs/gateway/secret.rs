use std::{fs, path::PathBuf};

#[cfg(test)]
use schemars::JsonSchema;
use serde::Deserialize;

use crate::failure::Failure;

/// A text, or where a secret is.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(untagged)]
pub(super) enum SecretValue {
    /// A text that is not a secret.
    Text(String),
    Source(SecretSource),
}

/// The place of a secret.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
pub(super) enum SecretSource {
    /// The name of an environment variable.
    Env(String),
    /// The name of an environment variable with a token: the text is `Bearer ` and the token.
    #[serde(rename = "bearer_env")]
    BearerEnv(String),
    /// The path of a file.
    File(PathBuf),
}

impl SecretValue {
    /// Reads the text.
    pub(super) fn read(&self) -> Result<String, Failure> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::Source(SecretSource::Env(name)) => variable(name),
            Self::Source(SecretSource::BearerEnv(name)) => Ok(format!("Bearer {}", variable(name)?)),
            Self::Source(SecretSource::File(path)) => {
                let text = fs::read_to_string(path).map_err(|error| {
                    let message = format!("the secret in `{}` cannot be read: {error}", path.display());
                    Failure::usage(message, format!("ls -l {}", path.display()))
                })?;
                Ok(text.trim_end_matches(['\r', '\n']).to_owned())
            }
        }
    }
}

impl SecretValue {
    /// Returns what is wrong with the value as the secret of a client.
    pub(super) fn fault_as_client_secret(&self) -> Option<String> {
        matches!(self, Self::Text(_)).then(|| {
            "`client_secret` does not belong into this file: write `{ env = \"VARIABLE\" }` or `{ file = \"PATH\" }`".into()
        })
    }
}

fn variable(name: &str) -> Result<String, Failure> {
    std::env::var(name).map_err(|_| {
        let message = format!("the environment variable `{name}` is not set");
        Failure::usage(message, format!("export {name}=…"))
    })
}
