//! `WWW-Authenticate`: RFC 6750 §3 and RFC 9728 §5.1, in characters that a header can carry.

use std::fmt::Write;

use http::HeaderValue;

/// The challenge to a client whose request was refused.
#[derive(Clone, Copy, Debug)]
pub(super) struct Challenge<'a> {
    /// `Bearer` or `DPoP`.
    pub(super) scheme: &'a str,
    /// The error and its description.
    pub(super) error: Option<(&'a str, &'a str)>,
    /// The scopes to request, separated by spaces.
    pub(super) scope: &'a str,
    /// The address of the resource metadata.
    pub(super) resource_metadata: &'a str,
}

impl Challenge<'_> {
    pub(super) fn header(&self) -> HeaderValue {
        let mut text = self.scheme.to_owned();
        let mut between = ' ';
        let mut parameter = |name: &str, value: &str| {
            let separator = if between == ',' { ", " } else { " " };
            // Writing to a `String` does not fail.
            let _ = write!(text, "{separator}{name}=\"{}\"", quotable(value));
            between = ',';
        };
        if let Some((error, description)) = self.error {
            parameter("error", error);
            parameter("error_description", description);
        }
        if !self.scope.is_empty() {
            parameter("scope", self.scope);
        }
        parameter("resource_metadata", self.resource_metadata);
        // Only allowed characters are left.
        HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static("Bearer"))
    }
}

/// Removes the characters that `error_description` and `scope` must not contain: those that need escaping, and those that
/// are not ASCII.
fn quotable(text: &str) -> String {
    let fits = |c: char| matches!(c, ' '..='!' | '#'..='[' | ']'..='~');
    text.chars().map(|c| if fits(c) { c } else { '?' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ELSEWHERE: &str = "https://h/.well-known/oauth-protected-resource/mcp";

    fn text_of(error: Option<(&str, &str)>, scope: &str) -> String {
        let challenge = Challenge { scheme: "Bearer", error, scope, resource_metadata: ELSEWHERE };
        challenge.header().to_str().unwrap().to_owned()
    }

    #[test]
    fn each_says_where_to_get_a_token() {
        assert_eq!(text_of(None, ""), format!(r#"Bearer resource_metadata="{ELSEWHERE}""#));
        assert_eq!(text_of(None, "a b"), format!(r#"Bearer scope="a b", resource_metadata="{ELSEWHERE}""#));
        assert_eq!(
            text_of(Some(("invalid_token", "it has expired")), "a"),
            format!(
                r#"Bearer error="invalid_token", error_description="it has expired", scope="a", resource_metadata="{ELSEWHERE}""#
            )
        );
    }

    #[test]
    fn nothing_breaks_out_of_its_quotes() {
        let text = text_of(Some(("invalid_token", "a\"b\\c\r\nX: y\u{7f}ü")), "x\"y");
        assert!(
            text.starts_with(
                r#"Bearer error="invalid_token", error_description="a?b?c??X: y??", scope="x?y""#
            ),
            "{text}"
        );
    }
}
