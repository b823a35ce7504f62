use bytes::Bytes;
use http::{Response, StatusCode, header};
use serde_json::{Value, json};

/// The response of an endpoint.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Box<Value>,
    /// The address that the user is redirected to.
    pub(super) location: Option<String>,
    /// The nonce of the next DPoP proof.
    pub(super) nonce: Option<String>,
}

impl Answer {
    pub(super) fn ok(body: Value) -> Self {
        Self { status: 200, body: Box::new(body), location: None, nonce: None }
    }

    pub(super) fn bare(status: u16) -> Self {
        Self { status, ..Self::ok(Value::Null) }
    }

    /// Returns an error response as of RFC 6749 §5.2.
    pub(super) fn refused(error: &str, description: &str) -> Self {
        let status = if error == "invalid_client" { 401 } else { 400 };
        let mut body = json!({ "error": error });
        if !description.is_empty() {
            body["error_description"] = json!(description);
        }
        Self { status, ..Self::ok(body) }
    }

    pub(super) fn sent_to(location: String) -> Self {
        Self { location: Some(location), ..Self::bare(302) }
    }

    /// Returns the `error` of the response.
    pub(super) fn error(&self) -> Option<&str> {
        self.body["error"].as_str()
    }

    pub(super) fn into_response(self) -> Response<Bytes> {
        let body = if self.body.is_null() { Bytes::new() } else { Bytes::from(self.body.to_string()) };
        let mut response = Response::new(body);
        *response.status_mut() =
            StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
        headers.insert(header::CACHE_CONTROL, http::HeaderValue::from_static("no-store"));
        if let Some(location) = self.location.and_then(|location| location.parse().ok()) {
            headers.insert(header::LOCATION, location);
        }
        if let Some(nonce) = self.nonce.and_then(|nonce| nonce.parse().ok()) {
            headers.insert("dpop-nonce", nonce);
        }
        response
    }
}
