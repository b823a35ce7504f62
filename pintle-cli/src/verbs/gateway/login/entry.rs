use std::fmt;

use pintle_oauth::client::Registered;
#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};

use super::super::secret::{SecretValue, fault_as_client_secret};
use crate::failure::Failure;

/// The login to the server of a target: of nobody, of the user of the gateway, or of each principal for itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(untagged))]
pub(in super::super) enum LoginEntry {
    #[default]
    #[cfg_attr(test, schemars(skip))]
    Nobody,
    /// Whether the user of the gateway logs in, for a gateway of one user.
    #[cfg_attr(test, schemars(with = "bool"))]
    User,
    /// Each principal logs in with an account of its own.
    #[cfg_attr(test, schemars(with = "LoginWord"))]
    Each,
}

/// The word in place of `true`.
#[cfg(test)]
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(dead_code, reason = "it is the schema of a word")]
enum LoginWord {
    Each,
}

impl<'de> Deserialize<'de> for LoginEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = LoginEntry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`true`, `false` or `\"each\"`")
            }

            fn visit_bool<E: de::Error>(self, is_user: bool) -> Result<LoginEntry, E> {
                Ok(if is_user { LoginEntry::User } else { LoginEntry::Nobody })
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<LoginEntry, E> {
                match word {
                    "each" => Ok(LoginEntry::Each),
                    other => Err(E::unknown_variant(other, &["each"])),
                }
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// The gateway as a client of the authorization server of a target, if it is registered there already.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub(in super::super) struct LoginClientEntry {
    /// The issuer of the tokens of the target.
    issuer: String,
    /// The id of the client.
    client_id: String,
    /// The secret of the client, from the environment or a file.
    client_secret: Option<SecretValue>,
}

impl LoginClientEntry {
    /// Returns what is wrong with the entry.
    pub(in super::super) fn fault(&self) -> Option<String> {
        self.client_secret.as_ref().and_then(fault_as_client_secret)
    }

    /// Returns the secret of the client.
    pub(in super::super) fn secret(&self) -> Option<&SecretValue> {
        self.client_secret.as_ref()
    }

    /// Returns the client.
    pub(in super::super) fn registered(&self) -> Result<Registered, Failure> {
        let client = Registered::new(&self.issuer, &self.client_id);
        Ok(match &self.client_secret {
            Some(secret) => client.secret(secret.read()?),
            None => client,
        })
    }
}
