use std::collections::HashMap;

use http::HeaderName;

use super::Operation;
use crate::document::{Document, Node};

/// How a credential is sent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Carrier {
    Header(HeaderName),
    Query(String),
    Cookie(String),
    Bearer,
    Basic,
}

/// A security scheme of a document.
#[derive(Clone, Debug)]
pub(crate) struct Scheme<'a> {
    /// `None` if it is not supported.
    pub(crate) carrier: Option<Carrier>,
    /// Whether its tokens are of OAuth.
    pub(crate) is_oauth: bool,
    /// Where a program gets a token for itself.
    pub(crate) token_url: Option<&'a str>,
}

/// Returns the security schemes of a document by their names.
pub(crate) fn schemes(document: &Document) -> HashMap<&str, Scheme<'_>> {
    let components = document.root().get("components");
    let schemes = components.into_iter().flat_map(|components| components.members_of("securitySchemes"));
    schemes.map(|(name, node)| (name, scheme(node.resolve().ok()))).collect()
}

fn scheme(node: Option<Node<'_>>) -> Scheme<'_> {
    let kind = node.and_then(|node| node.text("type"));
    let flow = node.and_then(|node| node.get("flows")?.get("clientCredentials"));
    Scheme {
        carrier: node.and_then(carrier),
        is_oauth: matches!(kind, Some("oauth2" | "openIdConnect")),
        token_url: flow.and_then(|flow| flow.text("tokenUrl")).filter(|url| !url.is_empty()),
    }
}

fn carrier(node: Node<'_>) -> Option<Carrier> {
    match node.text("type")? {
        "apiKey" => {
            let name = node.text("name").filter(|name| !name.is_empty())?;
            match node.text("in")? {
                "header" => HeaderName::from_bytes(name.as_bytes()).ok().map(Carrier::Header),
                "query" => Some(Carrier::Query(name.to_owned())),
                "cookie" => Some(Carrier::Cookie(name.to_owned())),
                _ => None,
            }
        }
        "http" => match node.text("scheme")?.to_ascii_lowercase().as_str() {
            "bearer" => Some(Carrier::Bearer),
            "basic" => Some(Carrier::Basic),
            _ => None,
        },
        // A token that the program has got.
        "oauth2" | "openIdConnect" => Some(Carrier::Bearer),
        _ => None,
    }
}

/// Returns the alternatives of schemes that an operation wants, each of which is complete. None at all is anonymous.
pub(crate) fn wanted<'a>(operation: &Operation<'a>, document: &'a Document) -> Vec<Vec<&'a str>> {
    let own = operation.node.get("security");
    let wanted = own.or_else(|| document.root().get("security"));
    let alternatives = wanted.into_iter().flat_map(Node::items);
    alternatives.map(|schemes| schemes.members().map(|(name, _)| name).collect()).collect()
}
