use pintle::{Error, Result};

use crate::shared::{form, secret::Secret};

/// The limit of characters of an authorization server's error that are shown.
const SHOWN: usize = 200;

/// The parameters that an authorization server redirected the user back with.
#[derive(Debug)]
pub(crate) struct Callback {
    code: Option<Secret>,
    state: Option<String>,
    iss: Option<String>,
    error: Option<String>,
    description: Option<String>,
}

/// The expected parameters, recorded before the user was redirected.
#[derive(Debug)]
pub(crate) struct Expected<'a> {
    pub(crate) state: &'a str,
    pub(crate) issuer: &'a str,
    /// Whether the metadata promises an `iss` parameter.
    pub(crate) names_itself: bool,
}

impl Callback {
    /// Parses the address that the user was redirected to, or its query alone.
    pub(crate) fn parse(address: &str) -> Result<Self> {
        let query = address.trim().split('#').next().unwrap_or_default();
        let query = query.split_once('?').map_or(query, |(_, query)| query);
        let unread = || Error::Decode("the redirect of the login cannot be parsed".into());
        let mut callback = Self { code: None, state: None, iss: None, error: None, description: None };
        for (name, value) in form::pairs(query).ok_or_else(unread)? {
            let place = match name.as_str() {
                "code" => {
                    if callback.code.replace(value.into()).is_some() {
                        return Err(unread());
                    }
                    continue;
                }
                "state" => &mut callback.state,
                "iss" => &mut callback.iss,
                "error" => &mut callback.error,
                "error_description" => &mut callback.description,
                _ => continue,
            };
            // A parameter that occurs twice is ambiguous.
            if place.replace(value).is_some() {
                return Err(unread());
            }
        }
        Ok(callback)
    }

    /// Returns the code, if `state` and issuer are the expected ones.
    ///
    /// Nothing of a response from another party is used or shown, not even its error.
    pub(crate) fn check(self, expected: &Expected<'_>) -> Result<Secret> {
        if self.state.as_deref() != Some(expected.state) {
            return Err(Error::Refused(
                "the redirect of the login has another `state` than the request; start the login again"
                    .into(),
            ));
        }
        // Compared as strings: equivalent addresses are different issuers.
        match &self.iss {
            Some(iss) if iss != expected.issuer => {
                return Err(Error::Refused(format!(
                    "the redirect of the login is not from the authorization server `{}`; nothing was sent to either",
                    expected.issuer
                )));
            }
            None if expected.names_itself => {
                return Err(Error::Refused(format!(
                    "the redirect of the login has no `iss`, which the metadata of the authorization server `{}` promises",
                    expected.issuer
                )));
            }
            _ => {}
        }
        if let Some(error) = &self.error {
            let description = self.description.as_deref().unwrap_or_default();
            return Err(Error::Refused(format!("the login was refused: {}", error_text(error, description))));
        }
        self.code.ok_or_else(|| Error::Decode("the redirect of the login has no `code`".into()))
    }
}

/// Formats an error of an authorization server on one line of limited length.
pub(crate) fn error_text(error: &str, description: &str) -> String {
    let clean = |text: &str| -> String {
        text.chars().take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect()
    };
    match description.trim() {
        "" => format!("`{}`", clean(error)),
        description => format!("`{}`: {}", clean(error), clean(description)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(address: &str, names_itself: bool) -> String {
        let expected = Expected { state: "s", issuer: "https://as", names_itself };
        match Callback::parse(address).and_then(|callback| callback.check(&expected)) {
            Ok(code) => format!("code {}", code.reveal()),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn an_answer_counts_only_from_whom_it_was_asked() {
        let table = [
            ("http://l/cb?code=c&state=s&iss=https%3A%2F%2Fas", true, "code c"),
            ("http://l/cb?code=c&state=s&iss=https://as", false, "code c"),
            ("http://l/cb?code=c&state=s", false, "code c"),
            ("code=c&state=s", false, "code c"),
            ("http://l/cb?code=c&state=s", true, "has no `iss`"),
            ("http://l/cb?code=c&state=s&iss=https://evil", true, "not from the authorization server"),
            ("http://l/cb?code=c&state=s&iss=https://evil", false, "not from the authorization server"),
            ("http://l/cb?code=c&state=s&iss=https://as/", true, "not from the authorization server"),
            ("http://l/cb?code=c&state=s&iss=https://AS", true, "not from the authorization server"),
            ("http://l/cb?code=c&state=s&iss=https://as:443", true, "not from the authorization server"),
            (
                "http://l/cb?error=x&error_description=lies&state=s&iss=https://evil",
                true,
                "not from the authorization",
            ),
            ("http://l/cb?error=x&error_description=lies&state=s", true, "has no `iss`"),
            ("http://l/cb?error=access_denied&state=s", false, "the login was refused: `access_denied`"),
            ("http://l/cb?error=e&error_description=no%0Away&state=s", false, "refused: `e`: no way"),
            ("http://l/cb?code=c&state=t", false, "another `state`"),
            ("http://l/cb?code=c", false, "another `state`"),
            ("http://l/cb?code=c&code=d&state=s", false, "cannot be parsed"),
            ("http://l/cb?code=c&state=s&iss=https://as&iss=https://evil", true, "cannot be parsed"),
            ("http://l/cb?state=s", false, "has no `code`"),
            ("http://l/cb?code=%ff&state=s", false, "cannot be parsed"),
        ];
        for (address, names_itself, expected) in table {
            let description = checked(address, names_itself);
            assert!(description.contains(expected), "{address}: {description}");
            assert!(!description.contains("lies"), "{description}");
        }
    }

    #[test]
    fn a_code_is_not_printed() {
        let callback = Callback::parse("code=c0de&state=s").unwrap();
        assert!(!format!("{callback:?}").contains("c0de"));
    }
}
