use http::{HeaderMap, HeaderValue, Method, Uri};

use super::Refusal;

/// The parts of a request's head that the rules depend on, found in one pass over its headers.
///
/// ```
/// use http::{HeaderMap, Method, Uri};
/// use pintle_proto::http::Head;
///
/// let mut headers = HeaderMap::new();
/// headers.insert("mcp-session-id", "9f86d081".parse().unwrap());
/// let uri = Uri::from_static("/mcp");
/// let head = Head::new(&Method::POST, &uri, &headers);
/// assert_eq!(head.session().unwrap(), Some("9f86d081"));
/// assert_eq!(head.version().unwrap(), None);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    pub(super) method: &'a Method,
    /// The authority of the request target: HTTP/2 sends it instead of `Host`.
    pub(super) authority: Option<&'a str>,
    query: Option<&'a str>,
    pub(super) headers: &'a HeaderMap,
    pub(super) host: Field<'a>,
    pub(super) origin: Field<'a>,
    pub(super) accept: Field<'a>,
    pub(super) content_type: Field<'a>,
    pub(super) content_length: Field<'a>,
    pub(super) mcp_method: Field<'a>,
    pub(super) mcp_name: Field<'a>,
    version: Field<'a>,
    session: Field<'a>,
    last_event_id: Field<'a>,
}

impl<'a> Head<'a> {
    /// Reads a head without validating it.
    pub fn new(method: &'a Method, uri: &'a Uri, headers: &'a HeaderMap) -> Self {
        let mut head = Self {
            method,
            authority: uri.authority().map(http::uri::Authority::as_str),
            query: uri.query(),
            headers,
            host: Field::Absent,
            origin: Field::Absent,
            accept: Field::Absent,
            content_type: Field::Absent,
            content_length: Field::Absent,
            mcp_method: Field::Absent,
            mcp_name: Field::Absent,
            version: Field::Absent,
            session: Field::Absent,
            last_event_id: Field::Absent,
        };
        for (name, value) in headers {
            let field = match name.as_str() {
                "host" => &mut head.host,
                "origin" => &mut head.origin,
                "accept" => &mut head.accept,
                "content-type" => &mut head.content_type,
                "content-length" => &mut head.content_length,
                "mcp-method" => &mut head.mcp_method,
                "mcp-name" => &mut head.mcp_name,
                "mcp-protocol-version" => &mut head.version,
                "mcp-session-id" => &mut head.session,
                "last-event-id" => &mut head.last_event_id,
                _ => continue,
            };
            *field = match field {
                Field::Absent => Field::Once(value),
                Field::Once(_) | Field::Repeated => Field::Repeated,
            };
        }
        head
    }

    /// Returns the HTTP method.
    pub fn method(&self) -> &'a Method {
        self.method
    }

    /// Returns whether the request has a `Host` or an authority.
    pub fn has_host(&self) -> bool {
        self.authority.is_some() || !matches!(self.host, Field::Absent)
    }

    /// Returns the query of the request target.
    pub fn query(&self) -> Option<&'a str> {
        self.query
    }

    /// Refuses with 415 unless `Content-Type` is JSON.
    pub fn check_content_type(&self) -> Result<(), Refusal> {
        super::accept::check_content_type(self)
    }

    /// Returns the value of `MCP-Protocol-Version`.
    pub fn version(&self) -> Result<Option<&'a str>, Refusal> {
        self.version.text("MCP-Protocol-Version")
    }

    /// Returns the value of `Mcp-Session-Id`.
    pub fn session(&self) -> Result<Option<&'a str>, Refusal> {
        self.session.text("Mcp-Session-Id")
    }

    /// Returns the value of `Last-Event-ID`, which is UTF-8. An empty value counts as absent: no event was received
    /// yet.
    pub fn last_event_id(&self) -> Result<Option<&'a str>, Refusal> {
        let Some(bytes) = self.last_event_id.bytes("Last-Event-ID")? else { return Ok(None) };
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Some(text).filter(|text| !text.is_empty())),
            Err(_) => Err(ill_formed("Last-Event-ID")),
        }
    }
}

/// A header that may occur once.
#[derive(Clone, Copy, Debug)]
pub(super) enum Field<'a> {
    Absent,
    Once(&'a HeaderValue),
    Repeated,
}

impl<'a> Field<'a> {
    /// Returns the value without surrounding white space.
    pub(super) fn bytes(self, name: &str) -> Result<Option<&'a [u8]>, Refusal> {
        match self {
            Self::Absent => Ok(None),
            Self::Once(value) => Ok(Some(trim(value.as_bytes()))),
            // Different readers may use different values.
            Self::Repeated => {
                Err(Refusal::header_mismatch(format!("the `{name}` header is repeated; send it once")))
            }
        }
    }

    /// Returns the value as text, without surrounding white space: visible ASCII, spaces and tabs.
    pub(super) fn text(self, name: &str) -> Result<Option<&'a str>, Refusal> {
        let Self::Once(value) = self else { return self.bytes(name).map(|_| None) };
        match value.to_str() {
            Ok(text) => Ok(Some(trim_text(text))),
            Err(_) => Err(ill_formed(name)),
        }
    }
}

/// Trims the optional white space that RFC 9110 allows around a value.
pub(super) fn trim(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

fn trim_text(text: &str) -> &str {
    let padded = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    match padded(text.as_bytes().first()) || padded(text.as_bytes().last()) {
        true => text.trim_matches([' ', '\t']),
        false => text,
    }
}

fn ill_formed(name: &str) -> Refusal {
    Refusal::header_mismatch(format!("the `{name}` header is not plain text; send visible ASCII"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_around_a_value_is_not_part_of_it() {
        for (raw, trimmed) in [("a", "a"), ("  a b\t", "a b"), ("", ""), (" \t ", ""), ("\ta", "a")] {
            assert_eq!(trim(raw.as_bytes()), trimmed.as_bytes());
        }
    }

    #[test]
    fn white_space_on_one_side_of_a_text_is_not_part_of_it_either() {
        let uri = Uri::from_static("/mcp");
        for raw in ["9f", " 9f", "9f\t", "\t9f "] {
            let headers = HeaderMap::from_iter([(
                http::HeaderName::from_static("mcp-session-id"),
                HeaderValue::from_static(raw),
            )]);
            let head = Head::new(&Method::GET, &uri, &headers);
            assert_eq!(head.session().unwrap(), Some("9f"), "{raw:?}");
        }
    }

    #[test]
    fn a_value_that_two_readers_could_take_differently_is_refused() {
        let uri = Uri::from_static("/mcp");
        let mut headers = HeaderMap::new();
        headers.append("MCP-Protocol-Version", HeaderValue::from_static("2026-07-28"));
        headers.append("mcp-protocol-version", HeaderValue::from_static("2025-11-25"));
        headers.append("mcp-session-id", HeaderValue::from_bytes(b"\xe4\xb8\x96").unwrap());
        headers.append("last-event-id", HeaderValue::from_bytes(b"\xe4\xb8\x96").unwrap());
        let head = Head::new(&Method::GET, &uri, &headers);
        let refusal = head.version().unwrap_err();
        assert_eq!(refusal.error.message, "the `MCP-Protocol-Version` header is repeated; send it once");
        let refusal = head.session().unwrap_err();
        assert_eq!(
            refusal.error.message,
            "the `Mcp-Session-Id` header is not plain text; send visible ASCII"
        );
        assert_eq!(head.last_event_id().unwrap(), Some("世"));
    }
}
