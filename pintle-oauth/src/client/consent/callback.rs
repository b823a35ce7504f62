use pintle::{Error, Result};

use crate::shared::{form, secret::Secret};

/// How much of what an authorization server says is shown.
const SHOWN: usize = 200;

/// What an authorization server sent the user back with.
#[derive(Debug)]
pub(crate) struct Callback {
    code: Option<Secret>,
    state: Option<String>,
    iss: Option<String>,
    error: Option<String>,
    description: Option<String>,
}

/// What it is checked against: what was noted before the user was sent away.
#[derive(Debug)]
pub(crate) struct Expected<'a> {
    pub(crate) state: &'a str,
    pub(crate) issuer: &'a str,
    /// Whether the authorization server says that it names itself.
    pub(crate) names_itself: bool,
}

impl Callback {
    /// Reads the address that the user came back to, or only its query.
    pub(crate) fn parse(address: &str) -> Result<Self> {
        let query = address.trim().split('#').next().unwrap_or_default();
        let query = query.split_once('?').map_or(query, |(_, query)| query);
        let unread = || Error::Decode("the address that the login led back to cannot be read".into());
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
            // Two answers to one question: whoever reads the other one is misled.
            if place.replace(value).is_some() {
                return Err(unread());
            }
        }
        Ok(callback)
    }

    /// The code, if it is the answer to what was asked, from whom it was asked.
    ///
    /// Nothing of an answer from somebody else is used, nor shown: not even its error.
    pub(crate) fn check(self, expected: &Expected<'_>) -> Result<Secret> {
        if self.state.as_deref() != Some(expected.state) {
            return Err(Error::Refused(
                "the login led back with another `state` than it was started with: start it again".into(),
            ));
        }
        // As strings: two issuers that mean the same are two issuers.
        match &self.iss {
            Some(iss) if iss != expected.issuer => {
                return Err(Error::Refused(format!(
                    "the login led back from another authorization server than `{}`: nothing was sent to either",
                    expected.issuer
                )));
            }
            None if expected.names_itself => {
                return Err(Error::Refused(format!(
                    "the authorization server `{}` says that it names itself in `iss`, and the login led back \
                     without it",
                    expected.issuer
                )));
            }
            _ => {}
        }
        if let Some(error) = &self.error {
            let said = self.description.as_deref().unwrap_or_default();
            return Err(Error::Refused(format!("the login was refused: {}", told(error, said))));
        }
        self.code.ok_or_else(|| Error::Decode("the login led back without a `code`".into()))
    }
}

/// An error of an authorization server, on one line and not too long.
pub(crate) fn told(error: &str, description: &str) -> String {
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
            ("http://l/cb?code=c&state=s", true, "says that it names itself"),
            ("http://l/cb?code=c&state=s&iss=https://evil", true, "another authorization server"),
            ("http://l/cb?code=c&state=s&iss=https://evil", false, "another authorization server"),
            ("http://l/cb?code=c&state=s&iss=https://as/", true, "another authorization server"),
            ("http://l/cb?code=c&state=s&iss=https://AS", true, "another authorization server"),
            ("http://l/cb?code=c&state=s&iss=https://as:443", true, "another authorization server"),
            (
                "http://l/cb?error=x&error_description=lies&state=s&iss=https://evil",
                true,
                "another authorization",
            ),
            ("http://l/cb?error=x&error_description=lies&state=s", true, "says that it names itself"),
            ("http://l/cb?error=access_denied&state=s", false, "the login was refused: `access_denied`"),
            ("http://l/cb?error=e&error_description=no%0Away&state=s", false, "refused: `e`: no way"),
            ("http://l/cb?code=c&state=t", false, "another `state`"),
            ("http://l/cb?code=c", false, "another `state`"),
            ("http://l/cb?code=c&code=d&state=s", false, "cannot be read"),
            ("http://l/cb?code=c&state=s&iss=https://as&iss=https://evil", true, "cannot be read"),
            ("http://l/cb?state=s", false, "without a `code`"),
            ("http://l/cb?code=%ff&state=s", false, "cannot be read"),
        ];
        for (address, names_itself, expected) in table {
            let said = checked(address, names_itself);
            assert!(said.contains(expected), "{address}: {said}");
            assert!(!said.contains("lies"), "{said}");
        }
    }

    #[test]
    fn a_code_is_not_printed() {
        let callback = Callback::parse("code=c0de&state=s").unwrap();
        assert!(!format!("{callback:?}").contains("c0de"));
    }
}
