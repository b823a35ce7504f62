//! The challenges of a refused request: `WWW-Authenticate`, RFC 9110 §11.6.1.

use crate::shared::scope::Scopes;

/// One challenge: a scheme that the server accepts, with its parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AuthChallenge {
    /// `bearer` or `dpop`, in lower case.
    scheme: String,
    parameters: Vec<(String, String)>,
}

impl AuthChallenge {
    pub(crate) fn error(&self) -> Option<&str> {
        self.parameter("error")
    }

    pub(crate) fn resource_metadata(&self) -> Option<&str> {
        self.parameter("resource_metadata")
    }

    pub(crate) fn scopes(&self) -> Option<Scopes> {
        self.parameter("scope").map(Scopes::parse)
    }

    fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// Returns the Bearer and DPoP challenges of these headers, in order. A syntax error ends its header only.
pub(crate) fn parse<'a>(headers: impl IntoIterator<Item = &'a str>) -> Vec<AuthChallenge> {
    let mut all = Vec::new();
    for header in headers {
        let mut rest = Cursor(header);
        while let Some(wanted) = rest.challenge() {
            all.push(wanted);
        }
    }
    all.retain(|wanted| matches!(wanted.scheme.as_str(), "bearer" | "dpop"));
    all
}

/// The unread rest of a header.
struct Cursor<'a>(&'a str);

impl<'a> Cursor<'a> {
    fn challenge(&mut self) -> Option<AuthChallenge> {
        self.skip(|c| c == ',' || is_space(c));
        let scheme = self.token()?.to_ascii_lowercase();
        let mut wanted = AuthChallenge { scheme, parameters: Vec::new() };
        self.skip(is_space);
        // A token instead of parameters, as in `Negotiate a87421==`: not used here.
        if let Some((name, after)) = self.peek_pair()
            && name.is_empty()
        {
            self.0 = after;
        }
        while let Some((name, after)) = self.peek_pair() {
            if name.is_empty() {
                break;
            }
            self.0 = after;
            self.skip(is_space);
            let Some(value) = self.value() else { break };
            wanted.parameters.push((name.to_ascii_lowercase(), value));
            self.skip(is_space);
            // A comma is followed by another parameter or by another challenge.
            if !self.0.starts_with(',') {
                break;
            }
            self.skip(|c| c == ',' || is_space(c));
        }
        if wanted.parameters.is_empty() {
            self.skip(|c| c != ',');
        }
        Some(wanted)
    }

    /// Returns the name of the next parameter and the text after its `=`, if a parameter is next.
    fn peek_pair(&self) -> Option<(&'a str, &'a str)> {
        let end = self.0.find(|c| !is_token(c)).unwrap_or(self.0.len());
        let (name, rest) = self.0.split_at(end);
        let after = rest.trim_start_matches(is_space).strip_prefix('=')?;
        // Another `=`, or the end: a token with padding instead of a parameter.
        let padding = after.trim_start_matches('=').trim_start_matches(is_space);
        if padding.is_empty() || padding.starts_with(',') {
            return Some(("", padding));
        }
        Some((name, after))
    }

    fn value(&mut self) -> Option<String> {
        let Some(quoted) = self.0.strip_prefix('"') else { return self.token().map(str::to_owned) };
        let mut value = String::new();
        let mut chars = quoted.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.0 = &quoted[at + 1..];
                    return Some(value);
                }
                '\\' => value.push(chars.next()?.1),
                c => value.push(c),
            }
        }
        self.0 = "";
        None
    }

    fn token(&mut self) -> Option<&'a str> {
        let end = self.0.find(|c| !is_token(c)).unwrap_or(self.0.len());
        let (token, rest) = self.0.split_at(end);
        self.0 = rest;
        (!token.is_empty()).then_some(token)
    }

    fn skip(&mut self, what: impl Fn(char) -> bool) {
        self.0 = self.0.trim_start_matches(what);
    }
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

/// Whether this is a character of a token. `/` and `:` are not, but occur in unquoted values.
fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~/:".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(header: &str) -> Vec<String> {
        let show = |wanted: &AuthChallenge| {
            let pairs = wanted.parameters.iter().map(|(name, value)| format!(" {name}={value}"));
            format!("{}{}", wanted.scheme, pairs.collect::<String>())
        };
        parse([header]).iter().map(show).collect()
    }

    #[test]
    fn challenges_are_read_however_they_are_written() {
        let table: &[(&str, &[&str])] = &[
            ("Bearer", &["bearer"]),
            ("", &[]),
            (", ,", &[]),
            ("bearer realm=\"x\"", &["bearer realm=x"]),
            (
                r#"Bearer error="invalid_token", scope="a b" , resource_metadata="https://h/.well-known/x?a=b,c""#,
                &["bearer error=invalid_token scope=a b resource_metadata=https://h/.well-known/x?a=b,c"],
            ),
            (r#"Bearer realm="say \"hi\", you", error=x"#, &[r#"bearer realm=say "hi", you error=x"#]),
            (r#"Basic realm="b", DPoP algs="ES256", Bearer scope=a"#, &["dpop algs=ES256", "bearer scope=a"]),
            ("Negotiate a87421==, Bearer error=x", &["bearer error=x"]),
            ("Negotiate, Bearer", &["bearer"]),
            ("Bearer resource_metadata=https://h:1/p", &["bearer resource_metadata=https://h:1/p"]),
            ("Bearer SCOPE = \"a\"", &["bearer scope=a"]),
            ("Bearer scope=\"never ends", &["bearer"]),
            ("Bearer scope=\"ends in \\", &["bearer"]),
            ("Bearer äöü, Bearer scope=a", &["bearer", "bearer scope=a"]),
            ("Bearer scope=", &["bearer"]),
            ("Bearer error=x, a87421==, DPoP algs=ES256", &["bearer error=x", "dpop algs=ES256"]),
            ("Bearer error=x, scope=, DPoP algs=ES256", &["bearer error=x", "dpop algs=ES256"]),
        ];
        for (header, expected) in table {
            assert_eq!(read(header), *expected, "{header}");
        }
    }

    #[test]
    fn several_headers_are_one_list() {
        let all = parse(["Basic", "DPoP error=\"use_dpop_nonce\"", "Bearer scope=\"b a b\""]);
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].scheme, "dpop");
        assert_eq!(all[0].error(), Some("use_dpop_nonce"));
        assert_eq!(all[1].scopes().unwrap().to_string(), "b a");
    }
}
