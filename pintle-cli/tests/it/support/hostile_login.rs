//! A server that requires a login, and an authorization server whose every text attacks the terminal.

use std::io::Write as _;

use serde_json::{Value, json};

use super::{
    hostile_server::HOSTILE,
    http_request::{HttpRequest, listen},
};

/// Starts both, in a thread that ends with the tests, and returns their origin. The first segment of a path says what attacks:
/// `ORIGIN/code/mcp` is a server whose authorization server is `ORIGIN/code`.
pub(crate) fn start() -> String {
    let address = listen(|mut connection, address| {
        let request = HttpRequest::read(connection)?;
        let (status, challenge, body) = answer(request.path(), &format!("http://{address}"));
        let body = body.to_string();
        write!(
            connection,
            "HTTP/1.1 {status}\r\n{challenge}content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        )
    });
    format!("http://{address}")
}

/// Returns the status, a header and the body of a response.
fn answer(path: &str, origin: &str) -> (&'static str, String, Value) {
    let h = HOSTILE;
    let ok = |body: Value| ("200 OK", String::new(), body);
    let refused =
        |error: &str| ("400 Bad Request", String::new(), json!({"error": error, "error_description": h}));
    if let Some(rest) = path.strip_prefix("/.well-known/oauth-protected-resource/") {
        let kind = rest.split('/').next().unwrap_or_default();
        let issuer = if kind == "issuer" { h.to_owned() } else { format!("{origin}/{kind}") };
        return ok(json!({"resource": format!("{origin}/{kind}/mcp"), "authorization_servers": [issuer],
            "resource_name": h, "scopes_supported": [h]}));
    }
    if let Some(kind) = path.strip_prefix("/.well-known/oauth-authorization-server/") {
        let at = |end: &str| format!("{origin}/{kind}/{end}");
        let issuer = if kind == "other" { h.to_owned() } else { format!("{origin}/{kind}") };
        let page = if kind == "page" { format!("{}?{h}", at("authorize")) } else { at("authorize") };
        return ok(json!({"issuer": issuer, "authorization_endpoint": page, "token_endpoint": at("token"),
            "registration_endpoint": at("register"), "device_authorization_endpoint": at("device"),
            "revocation_endpoint": at("revoke"), "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"], "service_documentation": h}));
    }
    match path.trim_start_matches('/').split_once('/') {
        Some((_, "mcp")) => {
            // A header can have no control characters.
            let text: String = h.chars().filter(|letter| !letter.is_control()).collect();
            let challenge = format!(
                "www-authenticate: Bearer error=\"invalid_token\", error_description=\"{text}\", scope=\"{text}\"\r\n"
            );
            ("401 Unauthorized", challenge, json!({"error": h}))
        }
        Some(("register", "register")) => refused(h),
        Some((_, "register")) => ok(json!({"client_id": format!("c{h}"), "client_name": h})),
        Some((_, "device")) => ok(json!({"device_code": "d", "user_code": format!("A{h}"), "interval": 1,
            "verification_uri": "https://example.com/x", "expires_in": 60})),
        Some((_, "token" | "revoke")) => refused(&format!("access_denied{h}")),
        _ => ("404 Not Found", String::new(), json!({"error": h})),
    }
}
