use std::{collections::HashMap, net::IpAddr};

use http::Uri;
use pintle_oauth::client::Reach;

use super::Operation;
use crate::{
    document::{Document, Node},
    url::has_dots,
};

/// Where the paths of an operation begin.
#[derive(Clone, Debug)]
pub(crate) struct Base {
    /// The scheme and the authority.
    pub(crate) origin: String,
    /// Without a `/` at the end.
    pub(crate) path: String,
    /// The networks that requests may go to; `None` for all.
    pub(crate) reach: Option<Reach>,
}

impl Base {
    /// Parses a URL. What it is written with it reaches if `is_trusted`, else only what is public.
    pub(crate) fn parse(url: &str, is_trusted: bool) -> Result<Self, String> {
        let shown =
            || url.split(['?', '#']).next().unwrap_or_default().rsplit('@').next().unwrap_or_default();
        let refuse = |why: &str| format!("the server `{}` cannot be used: {why}", shown());
        let example = "write one such as `https://api.example.com/v1`";
        let uri: Uri = url.parse().map_err(|_| refuse(&format!("it is not a URL; {example}")))?;
        let (Some(scheme @ ("http" | "https")), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(refuse(&format!("it is not an `http` or `https` URL; {example}")));
        };
        if authority.as_str().contains('@') {
            return Err(refuse("it has a user or a password; give them with `secret`"));
        }
        if authority.host().is_empty() {
            return Err(refuse("it has no host"));
        }
        if authority.as_str() != authority.host() && authority.port_u16().is_none() {
            return Err(refuse("its port is no number up to 65535; correct it"));
        }
        if uri.query().is_some() || url.contains('#') {
            return Err(refuse("it has a query or a fragment; leave that out"));
        }
        if has_dots(uri.path()) {
            return Err(refuse("its path has a segment `.` or `..`; leave that out"));
        }
        let reach = Reach::as_written(if is_trusted { url } else { "" });
        let path = uri.path().trim_end_matches('/').to_owned();
        Ok(Self { origin: format!("{scheme}://{authority}"), path, reach: Some(reach) })
    }

    /// Returns whether requests may be sent to this address.
    pub(crate) fn allows(&self, address: IpAddr) -> bool {
        self.reach.is_none_or(|reach| reach.allows(address))
    }

    /// Returns the host of the origin, if it is written as an address or as a name of this machine.
    pub(crate) fn literal(&self) -> Option<IpAddr> {
        let uri: Uri = self.origin.parse().ok()?;
        let host = uri.host()?.trim_end_matches('.').to_ascii_lowercase();
        if host == "localhost" || host.ends_with(".localhost") {
            return Some([127, 0, 0, 1].into());
        }
        host.trim_start_matches('[').trim_end_matches(']').parse().ok()
    }
}

/// The program's settings of servers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Servers {
    /// In place of the servers of the document.
    pub(crate) base: Option<String>,
    /// Where the document is from, which relative servers are relative to.
    pub(crate) document_url: Option<String>,
    pub(crate) variables: HashMap<String, String>,
    pub(crate) allow_private: bool,
}

impl Servers {
    /// Returns where the paths of an operation begin: by its own servers, by those of its path, or by those of the document.
    pub(crate) fn base(&self, operation: &Operation<'_>, document: &Document) -> Result<Base, String> {
        let own = |node: Node<'_>| node.items_of("servers").next().map(|server| self.url(server));
        let of_operation = own(operation.node).or_else(|| own(operation.item)).transpose()?;
        let (url, is_trusted) = match (of_operation, &self.base) {
            (Some(url), _) => self.absolute(url)?,
            (None, Some(base)) => (base.clone(), true),
            (None, None) => match own(document.root()).transpose()? {
                Some(url) => self.absolute(url)?,
                None => self.absolute("/".to_owned())?,
            },
        };
        let mut base = Base::parse(&url, is_trusted)?;
        if self.allow_private {
            base.reach = None;
        }
        Ok(base)
    }

    /// Returns the origin of the URL that the program gives.
    pub(crate) fn origin(&self) -> Option<String> {
        Base::parse(self.base.as_deref()?, true).ok().map(|base| base.origin)
    }

    /// Returns the URL of a server, with its variables.
    fn url(&self, server: Node<'_>) -> Result<String, String> {
        let text = server.text("url").ok_or("a server has no `url`; give it with `base`")?;
        let (mut url, mut rest) = (String::new(), text);
        while let Some((before, behind)) = rest.split_once('{') {
            let (name, after) =
                behind.split_once('}').ok_or("the `url` of a server has a `{` without `}`")?;
            url += before;
            url += &self.variable(name, server.get("variables").and_then(|variables| variables.get(name)))?;
            rest = after;
        }
        Ok(url + rest)
    }

    fn variable(&self, name: &str, node: Option<Node<'_>>) -> Result<String, String> {
        let Some(value) = self.variables.get(name) else {
            let default = node.and_then(|node| node.get("default")).map(|default| default.value);
            return match default {
                Some(serde_json::Value::String(text)) => Ok(text.clone()),
                Some(serde_json::Value::Number(number)) => Ok(number.to_string()),
                _ => {
                    Err(format!("the variable `{name}` of a server has no default; give it with `variable`"))
                }
            };
        };
        let allowed: Vec<_> = node.into_iter().flat_map(|node| node.items_of("enum")).collect();
        if !allowed.is_empty() && !allowed.iter().any(|one| one.value == value.as_str()) {
            let allowed: Vec<_> = allowed.iter().take(16).map(|one| one.value.to_string()).collect();
            return Err(format!("the variable `{name}` of a server is one of {}", allowed.join(", ")));
        }
        Ok(value.clone())
    }

    /// Returns an absolute URL, and whether its host is what the program wrote.
    pub(crate) fn absolute(&self, url: String) -> Result<(String, bool), String> {
        if url.contains("://") {
            return Ok((url, false));
        }
        let (from, is_trusted) = match (&self.document_url, &self.base) {
            (Some(from), _) | (None, Some(from)) => (from, true),
            (None, None) => {
                let what = if url == "/" { "the document names no server" } else { "its server is relative" };
                return Err(format!("{what}; give the URL with `base`"));
            }
        };
        let base = Base::parse(from.split(['?', '#']).next().unwrap_or_default(), is_trusted)?;
        if let Some(rest) = url.strip_prefix("//") {
            let scheme = base.origin.split("://").next().unwrap_or("https");
            return Ok((format!("{scheme}://{rest}"), false));
        }
        if url.starts_with('/') {
            return Ok((format!("{}{url}", base.origin), is_trusted));
        }
        let mut parts: Vec<&str> = base.path.split('/').collect();
        if parts.len() > 1 {
            parts.pop();
        }
        for part in url.split('/') {
            match part {
                "." => {}
                ".." if parts.len() > 1 => drop(parts.pop()),
                ".." => {}
                part => parts.push(part),
            }
        }
        Ok((format!("{}{}", base.origin, parts.join("/")), is_trusted))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn base(root: &Value, servers: &Servers) -> Result<String, String> {
        let mut document = json!({ "openapi": "3.1.0" });
        document.as_object_mut().unwrap().extend(root.as_object().unwrap().clone());
        let document = Document::from_value(document).unwrap();
        let item = document.root().get("item").unwrap();
        let operation = Operation { method: "get", path: "/", node: item.get("get").unwrap(), item };
        servers.base(&operation, &document).map(|base| base.origin + &base.path)
    }

    #[test]
    fn the_nearest_server_is_used() {
        let root = json!([{ "url": "https://root.test/v1/" }]);
        let none = Servers::default();
        let given = Servers { base: Some("http://given.test/x".to_owned()), ..Servers::default() };
        let from = Servers {
            document_url: Some("https://docs.test/a/openapi.json?x".to_owned()),
            variables: [("region".to_owned(), "eu".to_owned())].into(),
            ..Servers::default()
        };
        let plain = json!({ "item": { "get": {} }, "servers": root });
        assert_eq!(base(&plain, &none).unwrap(), "https://root.test/v1");
        assert_eq!(base(&plain, &given).unwrap(), "http://given.test/x");
        let path =
            json!({ "item": { "get": {}, "servers": [{ "url": "https://path.test" }] }, "servers": root });
        assert_eq!(base(&path, &given).unwrap(), "https://path.test");
        let own = json!({ "item": { "get": { "servers": [{ "url": "v2/" }] } } });
        assert_eq!(base(&own, &from).unwrap(), "https://docs.test/a/v2");
        assert!(base(&own, &none).unwrap_err().contains("`base`"));
        assert!(base(&json!({ "item": { "get": {} } }), &none).unwrap_err().contains("names no server"));
        assert_eq!(base(&json!({ "item": { "get": {} } }), &from).unwrap(), "https://docs.test");
        let variable = json!({ "url": "https://{region}.test/{v}", "variables":
            { "region": { "default": "us", "enum": ["us", "eu"] }, "v": { "default": 2 } } });
        let root = json!({ "item": { "get": {} }, "servers": [variable] });
        assert_eq!(base(&root, &none).unwrap(), "https://us.test/2");
        assert_eq!(base(&root, &from).unwrap(), "https://eu.test/2");
        let other = Servers { variables: [("region".to_owned(), "evil.test/#".to_owned())].into(), ..none };
        assert!(base(&root, &other).unwrap_err().contains("one of"));
    }

    #[test]
    fn what_is_no_server_is_refused_without_its_secrets() {
        for url in [
            "ftp://a.test",
            "https://",
            "https://u:s3cret@a.test",
            "https://a.test/?s3cret",
            "https://a.test/%2e%2E/",
            "https://a.test:x/",
            "https://a.test:65536",
            "https://a.test:",
            "a b",
        ] {
            let refused = Base::parse(url, true).unwrap_err();
            assert!(refused.contains("cannot be used") && !refused.contains("s3cret"), "{refused}");
        }
    }
}
