use http::{HeaderValue, Response, StatusCode, header};

/// Returns a page of a login, which no other page can contain and nothing keeps. `html` is its body.
pub(super) fn page(status: StatusCode, html: &str) -> Response<String> {
    let document = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>Log in</title></head>\n<body>{html}</body></html>\n"
    );
    with_headers(status, document)
}

/// Returns a page with one sentence.
pub(super) fn message(status: StatusCode, text: &str) -> Response<String> {
    page(status, &format!("<p>{}</p>", escaped(text)))
}

/// Returns a redirection.
pub(super) fn redirect(url: &str) -> Response<String> {
    let Ok(location) = HeaderValue::from_str(url) else {
        return message(StatusCode::BAD_GATEWAY, "The address of the login page cannot be used.");
    };
    let mut response = with_headers(StatusCode::SEE_OTHER, String::new());
    response.headers_mut().insert(header::LOCATION, location);
    response
}

/// Returns a response with the headers of all pages.
pub(super) fn with_headers(status: StatusCode, text: String) -> Response<String> {
    let mut response = Response::new(text);
    *response.status_mut() = status;
    for (name, value) in [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        // The form's own request needs an `Origin`, which `no-referrer` would withhold.
        (header::REFERRER_POLICY, "same-origin"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // Without `form-action`, which some browsers apply to the redirection that follows.
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; base-uri 'none'; frame-ancestors 'none'"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Returns a text as HTML has it. Characters that change the direction or the place of others are shown as `?`.
pub(super) fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for c in text.chars().take(500) {
        match c {
            '&' => html += "&amp;",
            '<' => html += "&lt;",
            '>' => html += "&gt;",
            '"' => html += "&quot;",
            '\'' => html += "&#39;",
            c if c.is_control()
                || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') =>
            {
                html.push('?');
            }
            c => html.push(c),
        }
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_be_markup_nor_turn_the_text_around() {
        assert_eq!(
            escaped("<b>\"ann\" & 'bob'</b>"),
            "&lt;b&gt;&quot;ann&quot; &amp; &#39;bob&#39;&lt;/b&gt;"
        );
        assert_eq!(escaped("ann\u{202e}\n"), "ann??");
        assert_eq!(escaped(&"x".repeat(10_000)).len(), 500);
    }
}
