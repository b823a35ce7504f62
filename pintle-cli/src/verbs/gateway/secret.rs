use std::collections::BTreeMap;

use pintle_serve::SecretError;
pub(super) use pintle_serve::SecretValue;

use crate::{failure::Failure, targets::secrets};

impl From<SecretError> for Failure {
    fn from(error: SecretError) -> Self {
        Self::usage(error.message, error.next)
    }
}

/// Returns what is wrong with a value as the secret of a client.
pub(super) fn fault_as_client_secret(value: &SecretValue) -> Option<String> {
    matches!(value, SecretValue::Text(_)).then(|| {
        "`client_secret` does not belong into this file: write `{ env = \"VARIABLE\" }` or `{ file = \"PATH\" }`".into()
    })
}

/// Returns the values of a table with the names of their settings.
pub(super) fn named<'a>(
    table: &'a str,
    values: &'a BTreeMap<String, SecretValue>,
) -> impl Iterator<Item = (String, &'a SecretValue)> {
    values.iter().map(move |(name, value)| (format!("{table}.{name}"), value))
}

/// Returns what looks like a secret among texts of a file with their names, and where it belongs.
pub(super) fn written<'a>(values: impl IntoIterator<Item = (&'a String, &'a SecretValue)>) -> Option<String> {
    let is_secret = |name: &str, value: &SecretValue| match value {
        SecretValue::Text(value) => secrets::is_secret(name) || secrets::has_secret(value),
        SecretValue::Source(_) => false,
    };
    let (name, _) = values.into_iter().find(|(name, value)| is_secret(name, value))?;
    Some(format!("`{name}` {NOT_HERE}: write `{name} = {{ env = \"VARIABLE\" }}` or `{{ file = \"PATH\" }}`"))
}

pub(super) const NOT_HERE: &str = "looks like a secret, which does not belong into this file";
