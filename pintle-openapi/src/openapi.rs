use std::{path::Path, time::Duration};

use http::{HeaderName, HeaderValue};
use pintle::client::http::Proxy;
use pintle_oauth::client::Secret;
use serde_json::Value;

use crate::{
    ApiTools, DocumentFiles, OAuthClient, OpenApiError, builder, document::Document, rules::OperationPattern,
    settings::Settings,
};

/// An OpenAPI document, and how its API is called.
///
/// Each operation becomes a tool: [`build`](Self::build).
///
/// ```no_run
/// use pintle::Server;
/// use pintle_openapi::OpenApi;
///
/// # fn serve() -> Result<Server, Box<dyn std::error::Error>> {
/// let pets = OpenApi::from_file("pets.yaml")?
///     .secret("token", std::env::var("PETS_TOKEN")?)
///     .include("tag:pets")
///     .exclude("DELETE /*")
///     .rename("getPetById", "get_pet")
///     .build()?;
/// for left_out in pets.left_out() {
///     eprintln!("{}: {}", left_out.operation, left_out.reason);
/// }
/// Ok(Server::new("pets", "1.0.0").provider(pets))
/// # }
/// ```
#[derive(Debug)]
#[must_use = "it has no tools until it is built"]
pub struct OpenApi {
    document: Document,
    settings: Settings,
}

impl OpenApi {
    /// Reads a document, in JSON or YAML, and the files in its folder that it refers to. Nothing is fetched. It blocks.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is no document of OpenAPI 3.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, OpenApiError> {
        Document::from_file(path.as_ref()).map(Self::of)
    }

    /// Reads a document from a text in JSON or YAML. It cannot refer to files.
    ///
    /// # Errors
    ///
    /// The text is no document of OpenAPI 3.
    pub fn from_text(text: &str) -> Result<Self, OpenApiError> {
        Document::from_text(text).map(Self::of)
    }

    /// Takes a document that is JSON already. It cannot refer to files.
    ///
    /// # Errors
    ///
    /// The value is no document of OpenAPI 3.
    pub fn from_value(document: Value) -> Result<Self, OpenApiError> {
        Document::from_value(document).map(Self::of)
    }

    /// Returns the files that were read, which tell whether the document has changed since.
    pub fn files(&self) -> &DocumentFiles {
        &self.document.read_files
    }

    fn of(document: Document) -> Self {
        Self { document, settings: Settings::new() }
    }

    /// Sets the name of the provider, for errors, logs and gates. The title of the document by default.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.settings.name = Some(name.into());
        self
    }

    /// Sets the URL of the API, in place of the servers of the document. Those of a path or an operation are still used.
    ///
    /// Requests go to public addresses. To a private network, or to this machine, they go only if this URL is written with an address of it or
    /// with `localhost`, or with [`allow_private`](Self::allow_private).
    pub fn base(mut self, url: impl Into<String>) -> Self {
        self.settings.servers.base = Some(url.into());
        self
    }

    /// Sets the URL of the document, which relative servers are relative to.
    pub fn document_url(mut self, url: impl Into<String>) -> Self {
        self.settings.servers.document_url = Some(url.into());
        self
    }

    /// Sets a variable of the servers of the document, in place of its default.
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.servers.variables.insert(name.into(), value.into());
        self
    }

    /// Sets the credential of a security scheme of the document: the API key, the bearer or OAuth token, or `user:password`.
    ///
    /// It is sent with the operations that want the scheme, and is in no error, log or `Debug`.
    pub fn secret(mut self, scheme: impl Into<String>, secret: impl Into<String>) -> Self {
        self.settings.secrets.push((scheme.into(), Secret::new(secret)));
        self
    }

    /// Gets tokens for a security scheme `oauth2` of the document with the credentials of a client.
    ///
    /// They are sent as [`secret`](Self::secret) is. Those of the client are sent to the token endpoint alone, with `https` beyond this machine.
    pub fn oauth_client(mut self, scheme: impl Into<String>, client: OAuthClient) -> Self {
        self.settings.oauth_clients.push((scheme.into(), client));
        self
    }

    /// Adds a header to every request. No argument replaces it.
    ///
    /// An invalid header is an error of [`build`](Self::build).
    pub fn header(mut self, name: impl TryInto<HeaderName>, value: impl TryInto<HeaderValue>) -> Self {
        match (name.try_into(), value.try_into()) {
            (Ok(name), Ok(mut value)) => {
                value.set_sensitive(true);
                self.settings.headers.insert(name, value);
            }
            (Ok(name), Err(_)) => {
                self.settings.fault =
                    Some(format!("the header `{name}` has a value that none can carry; correct it"));
            }
            (Err(_), _) => {
                self.settings.fault = Some("a header has a name that none can have; correct it".to_owned());
            }
        }
        self
    }

    /// Allows requests to private networks and to this machine, whatever names the server.
    pub fn allow_private(mut self) -> Self {
        self.settings.servers.allow_private = true;
        self
    }

    /// Makes tools only of the operations that this or another `include` matches: an operation id, `METHOD /path`, `/path` or `tag:NAME`, where
    /// `*` is any text.
    pub fn include(mut self, pattern: impl AsRef<str>) -> Self {
        self.settings.rules.include.push(OperationPattern::parse(pattern.as_ref()));
        self
    }

    /// Makes no tools of the operations that this matches, written as for [`include`](Self::include), which it overrules.
    pub fn exclude(mut self, pattern: impl AsRef<str>) -> Self {
        self.settings.rules.exclude.push(OperationPattern::parse(pattern.as_ref()));
        self
    }

    /// Sets the name of the tool of an operation, which is named by its id or by `METHOD /path`.
    pub fn rename(mut self, operation: impl Into<String>, name: impl Into<String>) -> Self {
        self.settings.rules.names.insert(operation.into(), name.into());
        self
    }

    /// Sets the description of the tool of an operation, which is named by its id or by `METHOD /path`.
    pub fn describe(mut self, operation: impl Into<String>, description: impl Into<String>) -> Self {
        self.settings.rules.descriptions.insert(operation.into(), description.into());
        self
    }

    /// Offers the operations that this matches, written as for [`include`](Self::include), as resources in place of tools, if they are read
    /// with `GET`: `name:///path`, and a template of URIs if they have arguments.
    pub fn resources(mut self, pattern: impl AsRef<str>) -> Self {
        self.settings.rules.resources.push(OperationPattern::parse(pattern.as_ref()));
        self
    }

    /// Returns only these fields of the answers of the operations that this matches, written as for [`include`](Self::include).
    ///
    /// A field is the name of a member, with those of members in it after dots: `owner.name`. It goes through lists. Fields of several
    /// patterns are added, and are in place of `x-mcp-fields` of the document.
    pub fn fields<F: Into<String>>(
        mut self,
        pattern: impl AsRef<str>,
        fields: impl IntoIterator<Item = F>,
    ) -> Self {
        let pattern = OperationPattern::parse(pattern.as_ref());
        self.settings.rules.fields.push((pattern, fields.into_iter().map(Into::into).collect()));
        self
    }

    /// Sets what the names of all tools begin with. They are at most 64 characters with it.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.settings.prefix = prefix.into();
        self
    }

    /// Leaves out the output schemas, for APIs whose documents do not describe what they answer. Some hosts refuse results that do not
    /// match.
    pub fn without_output_schemas(mut self) -> Self {
        self.settings.has_output_schemas = false;
        self
    }

    /// Sets how long an answer may take. 30 seconds by default.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = timeout;
        self
    }

    /// Reads up to this number of pages of an answer, and returns their lists as one. 1 by default: a note tells the arguments of the next page.
    ///
    /// They share the [timeout](Self::timeout) and [`max_answer`](Self::max_answer). The ways in which APIs name the next page that are
    /// known are in the guide.
    pub fn pages(mut self, pages: usize) -> Self {
        self.settings.pages = pages;
        self
    }

    /// Sets the limit of the text of a result in bytes. 64 KiB by default.
    ///
    /// The largest list of an answer is cut between items, and a note says how many there are. A text is cut between letters.
    pub fn max_result(mut self, bytes: usize) -> Self {
        self.settings.max_result = bytes;
        self
    }

    /// Sets the limit of an answer in bytes, beyond which nothing of it is read. 1 MiB by default.
    pub fn max_answer(mut self, bytes: usize) -> Self {
        self.settings.max_answer = bytes;
        self
    }

    /// Sets the proxy. Default: [`Proxy::system`]. Which addresses a proxy connects to is for the proxy to decide.
    pub fn proxy(mut self, proxy: Proxy) -> Self {
        self.settings.proxy = proxy;
        self
    }

    /// Makes the tools. An operation whose requests cannot be made is [left out](ApiTools::left_out).
    ///
    /// # Errors
    ///
    /// A setting is invalid, or names what the document does not have.
    pub fn build(&self) -> Result<ApiTools, OpenApiError> {
        builder::build(&self.document, &self.settings)
    }
}
