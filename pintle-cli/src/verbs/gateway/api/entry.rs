use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use pintle::server::Prefix;
use pintle_openapi::OpenApi;
#[cfg(test)]
use schemars::JsonSchema;
use serde::Deserialize;

use super::credential::CredentialEntry;
use crate::{
    failure::Failure,
    targets::secrets,
    verbs::gateway::{
        exchange::ExchangeEntry,
        secret::{NOT_HERE, SecretValue, named, written},
        target::duration_text,
    },
};

/// An HTTP API, described by an OpenAPI document: each operation is a tool.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(in crate::verbs::gateway) struct ApiEntry {
    /// The OpenAPI document, in JSON or YAML, and relative to the folder of this file.
    document: PathBuf,
    /// The URL of the API, in place of the servers of the document.
    base: Option<String>,
    /// The prefix of the names of tools, in place of the name of the API; an empty text for none.
    prefix: Option<String>,
    /// The credentials, by the names of security schemes of the document: an API key, a token, `user:password`, or a client that gets
    /// tokens.
    secrets: BTreeMap<String, CredentialEntry>,
    /// How tokens of clients are exchanged for tokens of the API at `base`.
    exchange: Option<ExchangeEntry>,
    /// Headers of every request.
    headers: BTreeMap<String, SecretValue>,
    /// Values of variables in the URLs of servers of the document.
    variables: BTreeMap<String, String>,
    /// The operations that are tools: ids, `METHOD /path`, `/path` or `tag:NAME`, where `*` is any text; all by default.
    include: Vec<String>,
    /// The operations that are no tools, written as those of `include`.
    exclude: Vec<String>,
    /// The operations with `GET` that are resources in place of tools, written as those of `include`.
    resources: Vec<String>,
    /// Names of tools without the prefix, by the ids of operations or `METHOD /path`.
    rename: BTreeMap<String, String>,
    /// Descriptions of tools, by the ids of operations or `METHOD /path`.
    describe: BTreeMap<String, String>,
    /// The fields of answers that are returned, by operations that are written as those of `include`: `owner.name` is that of a member.
    fields: BTreeMap<String, Vec<String>>,
    /// Whether tools have output schemas: `true` by default.
    output_schemas: Option<bool>,
    /// Whether requests may go to private addresses although `base` is not written as one.
    allow_private: bool,
    /// The time of an answer, such as `10s`; 30 seconds by default.
    #[serde(deserialize_with = "duration_text")]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    timeout: Option<Duration>,
    /// The limit of bytes of an answer: 1 MiB by default.
    max_answer: Option<usize>,
    /// The limit of bytes of the text of a result, beyond which lists and texts are cut: 64 KiB by default.
    max_result: Option<usize>,
    /// The limit of pages of an answer that are read as one: 1 by default.
    pages: Option<usize>,
}

impl ApiEntry {
    /// Creates the entry of an API without a prefix.
    pub(in crate::verbs::gateway) fn unprefixed(document: PathBuf, base: Option<String>) -> Self {
        Self { document, base, prefix: Some(String::new()), ..Self::default() }
    }

    /// Takes the entry from a file in another folder, which its document is in.
    pub(in crate::verbs::gateway) fn move_into(&mut self, folder: &Path) {
        self.document = folder.join(&self.document);
    }

    /// Returns what is wrong with the entry.
    pub(in crate::verbs::gateway) fn fault(&self) -> Option<String> {
        if self.document.as_os_str().is_empty() {
            return Some("it has no document: add `document = \"FILE\"`".to_owned());
        }
        if self.document.to_str().is_some_and(|path| path.contains("://")) {
            return Some(
                "`document` is a URL, and nothing is fetched: download it, and write its path".to_owned(),
            );
        }
        if self.timeout == Some(Duration::ZERO)
            || [self.max_answer, self.max_result, self.pages].contains(&Some(0))
        {
            return Some("a limit of 0 would let nothing answer: remove it, or write another".to_owned());
        }
        if let Some(part) = self.base.as_deref().and_then(secrets::in_url) {
            return Some(format!("{part} of `base` {NOT_HERE}: send it in `secrets` or `headers`"));
        }
        if let Some(exchange) = &self.exchange {
            let fault = exchange.fault();
            let wrong = || "`exchange` needs the URL that tokens are for: add `base`".to_owned();
            if fault.is_some() || self.base.is_none() {
                return Some(fault.unwrap_or_else(wrong));
            }
        }
        let fault = self.secrets.iter().find_map(|(scheme, secret)| secret.fault(scheme));
        fault.or_else(|| written(&self.headers))
    }

    /// Returns the values that may be secrets, with the settings that have them.
    pub(in crate::verbs::gateway) fn secrets(&self) -> Vec<(String, &SecretValue)> {
        let secrets =
            self.secrets.iter().map(|(scheme, secret)| (format!("secrets.{scheme}"), secret.secret()));
        let exchange = self.exchange.iter().filter_map(ExchangeEntry::secret);
        let exchange = exchange.map(|secret| ("exchange.client_secret".to_owned(), secret));
        secrets.chain(named("headers", &self.headers)).chain(exchange).collect()
    }

    /// Returns the exchange of tokens, and the URL that the new ones are for.
    pub(in crate::verbs::gateway) fn exchange(&self) -> Option<(&ExchangeEntry, &str)> {
        self.exchange.as_ref().zip(self.base.as_deref())
    }

    /// Refuses to serve the API of this name to everybody who can connect, if that would give them the rights of its owner there.
    pub(in crate::verbs::gateway) fn not_for_everybody(&self, name: &str) -> Result<(), Failure> {
        let is_source = |value: &SecretValue| matches!(value, SecretValue::Source(_));
        if self.secrets.is_empty() && !self.headers.values().any(is_source) {
            return Ok(());
        }
        let message = format!(
            "`{name}` uses a secret of this machine, which would be served to everybody who can connect: add `[auth]`, or `--bearer-env`"
        );
        Err(Failure::usage(message, "pintle gateway --help"))
    }

    /// Returns the text before the `_` of the names of tools; it is empty if there is no prefix.
    pub(in crate::verbs::gateway) fn prefix_text<'a>(&'a self, name: &'a str) -> &'a str {
        self.prefix.as_deref().unwrap_or(name)
    }

    /// Returns the prefix of the API of this name.
    pub(in crate::verbs::gateway) fn prefix(&self, name: &str) -> Prefix {
        match self.prefix_text(name) {
            "" => Prefix::none(),
            prefix => Prefix::new(prefix),
        }
    }

    /// Reads the document, and applies the settings, with the secrets that they need. It blocks.
    pub(super) fn open(&self, name: &str, folder: &Path) -> Result<OpenApi, OpenFailure> {
        let mut api = OpenApi::from_file(folder.join(&self.document))?.name(name);
        for (scheme, secret) in &self.secrets {
            api = secret.add_to(api, scheme)?;
        }
        for (header, value) in &self.headers {
            api = api.header(&**header, value.read()?);
        }
        api = self.base.iter().fold(api, OpenApi::base);
        api = self.variables.iter().fold(api, |api, (name, value)| api.variable(name, value));
        api = self.include.iter().fold(api, OpenApi::include);
        api = self.exclude.iter().fold(api, OpenApi::exclude);
        api = self.resources.iter().fold(api, OpenApi::resources);
        api = self.rename.iter().fold(api, |api, (operation, name)| api.rename(operation, name));
        api = self.describe.iter().fold(api, |api, (operation, text)| api.describe(operation, text));
        api = self.fields.iter().fold(api, |api, (operation, fields)| api.fields(operation, fields));
        api = self.max_result.into_iter().fold(api, OpenApi::max_result);
        api = self.pages.into_iter().fold(api, OpenApi::pages);
        api = self.timeout.into_iter().fold(api, OpenApi::timeout);
        api = self.max_answer.into_iter().fold(api, OpenApi::max_answer);
        if self.output_schemas == Some(false) {
            api = api.without_output_schemas();
        }
        Ok(if self.allow_private { api.allow_private() } else { api })
    }
}

/// The reason why a document is not used: a fault of the entry, or a secret that cannot be read.
pub(in crate::verbs::gateway) enum OpenFailure {
    Entry(String),
    Secret(Failure),
}

impl From<pintle_openapi::OpenApiError> for OpenFailure {
    fn from(error: pintle_openapi::OpenApiError) -> Self {
        Self::Entry(error.to_string())
    }
}

impl From<pintle_serve::SecretError> for OpenFailure {
    fn from(error: pintle_serve::SecretError) -> Self {
        Self::Secret(error.into())
    }
}
