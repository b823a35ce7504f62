use std::fmt;

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};

use crate::url::encode;

/// The length from which a secret is looked for in a text: shorter ones are in any text.
const MIN_LENGTH: usize = 4;

/// Secrets that are removed from the texts of others, who may repeat what they got.
///
/// They are found as they are, percent-encoded, escaped as in JSON and in base64, whatever the case of letters; so is what follows the first
/// space or colon of one, such as the token of `Bearer TOKEN` and the password of `user:password`.
///
/// ```
/// use pintle_openapi::Redaction;
///
/// let secrets = Redaction::of(["Bearer t0p/secret"]);
/// assert_eq!(secrets.apply("401: t0p%2Fsecret is no token"), "401: … is no token");
/// ```
#[derive(Clone, Default)]
pub struct Redaction(Vec<String>);

impl Redaction {
    /// Creates one of secrets.
    pub fn of<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let mut forms = Vec::new();
        for secret in secrets {
            let behind = |separator| secret.split_once(separator).map(|(_, rest)| rest);
            for part in [Some(secret), behind(' '), behind(':')].into_iter().flatten() {
                let encoded = encode(part);
                let escaped = serde_json::Value::from(part).to_string();
                forms.extend([
                    encoded.replace("%20", "+"),
                    escaped.trim_matches('"').to_owned(),
                    STANDARD.encode(part),
                    STANDARD_NO_PAD.encode(part),
                    URL_SAFE_NO_PAD.encode(part),
                    part.to_owned(),
                    encoded,
                ]);
            }
        }
        forms.retain(|form| form.len() >= MIN_LENGTH);
        forms.iter_mut().for_each(|form| form.make_ascii_lowercase());
        // A secret may be a part of another one.
        forms.sort_unstable_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        forms.dedup();
        Self(forms)
    }

    /// Returns a text without the secrets.
    #[must_use]
    pub fn apply(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for form in &self.0 {
            // Only ASCII changes its case, so that positions are the same.
            let lower = text.to_ascii_lowercase();
            let (mut redacted, mut end) = (String::new(), 0);
            for (start, found) in lower.match_indices(form.as_str()) {
                redacted += text.get(end..start).unwrap_or_default();
                redacted.push('…');
                end = start + found.len();
            }
            redacted += text.get(end..).unwrap_or_default();
            text = redacted;
        }
        text
    }
}

impl fmt::Debug for Redaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redaction(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_found_in_every_form() {
        let secrets = Redaction::of(["token k&y \"s3cret\"/2", "ann:pässword", "abc"]);
        for text in [
            "k&y \"s3cret\"/2",
            "token k&y \"s3cret\"/2",
            "TOKEN K&Y \"S3CRET\"/2",
            "k%26y%20%22s3cret%22%2F2",
            "k%26y+%22s3cret%22%2f2",
            "k&y \\\"s3cret\\\"/2",
            "ayZ5ICJzM2NyZXQiLzI=",
            "YW5uOnDDpHNzd29yZA",
            "pässword",
            "p%C3%A4ssword",
        ] {
            assert_eq!(secrets.apply(&format!("ü {text}!{text}")), "ü …!…", "{text}");
        }
        assert_eq!(secrets.apply("abc ann"), "abc ann", "what is in any text stays");
        assert_eq!(Redaction::of(["same", "same-too"]).apply("same-too same"), "… …");
        assert_eq!(format!("{secrets:?}"), "Redaction(…)");
    }
}
