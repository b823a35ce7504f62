use std::time::Duration;

use http::HeaderMap;
use pintle::client::http::Proxy;
use pintle_oauth::client::Secret;

use crate::{OAuthClient, operation::Servers, rules::OperationRules};

/// The program's settings of an API.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) name: Option<String>,
    pub(crate) prefix: String,
    pub(crate) rules: OperationRules,
    pub(crate) servers: Servers,
    /// By the name of the security scheme.
    pub(crate) secrets: Vec<(String, Secret)>,
    /// By the name of the security scheme.
    pub(crate) oauth_clients: Vec<(String, OAuthClient)>,
    pub(crate) headers: HeaderMap,
    pub(crate) has_output_schemas: bool,
    pub(crate) timeout: Duration,
    pub(crate) max_answer: usize,
    pub(crate) max_result: usize,
    pub(crate) pages: usize,
    pub(crate) proxy: Proxy,
    /// The error of an invalid setting.
    pub(crate) fault: Option<String>,
}

impl Settings {
    pub(crate) fn new() -> Self {
        Self {
            name: None,
            prefix: String::new(),
            rules: OperationRules::default(),
            servers: Servers::default(),
            secrets: Vec::new(),
            oauth_clients: Vec::new(),
            headers: HeaderMap::new(),
            has_output_schemas: true,
            timeout: Duration::from_secs(30),
            max_answer: 1 << 20,
            // As JSON some 20,000 tokens. Hosts refuse or cut results of more than 25,000.
            max_result: 64 << 10,
            pages: 1,
            proxy: Proxy::system(),
            fault: None,
        }
    }
}
