use pintle_types::schema::{PrimitiveSchema, StringFormat};
use serde_json::Value;

use super::{Form, check};

/// The rules of forms, for programs that show forms too.
impl Form {
    /// Returns what a text of this format is, for messages. `None` if the format is not known, which any text has.
    ///
    /// ```
    /// use pintle::{server::Form, types::schema::StringFormat};
    ///
    /// assert_eq!(Form::describe_format(&StringFormat::Date), Some("a date (`YYYY-MM-DD`)"));
    /// ```
    pub fn describe_format(format: &StringFormat) -> Option<&'static str> {
        rule(format).map(|(_, what)| what)
    }

    /// Whether a server accepts a value for a field of this schema.
    ///
    /// ```
    /// use pintle::{server::Form, types::schema::PrimitiveSchema};
    /// use serde_json::json;
    ///
    /// let arrival: PrimitiveSchema = serde_json::from_str(r#"{"type":"string","format":"date"}"#)?;
    /// assert!(Form::accepts(&arrival, &json!("2026-02-28")));
    /// assert!(!Form::accepts(&arrival, &json!("2026-02-30")));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn accepts(field: &PrimitiveSchema, value: &Value) -> bool {
        check::field("", field, value).is_ok()
    }

    /// Returns whether a text has this format.
    pub(super) fn has_format(format: &StringFormat, text: &str) -> bool {
        rule(format).is_none_or(|(is, _)| is(text))
    }
}

type FormatRule = (fn(&str) -> bool, &'static str);

/// Returns the check of a format, and what it is.
fn rule(format: &StringFormat) -> Option<FormatRule> {
    Some(match format {
        StringFormat::Email => (is_email, "an email address"),
        StringFormat::Uri => (is_uri, "a URI"),
        StringFormat::Date => (is_date, "a date (`YYYY-MM-DD`)"),
        StringFormat::DateTime => (is_date_time, "a date and time (`YYYY-MM-DDThh:mm:ssZ`)"),
        // An unknown format is left to the other side.
        _ => return None,
    })
}

/// Returns whether the text is a mailbox of RFC 5321 in its common form, `local@domain`.
fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let plain = |c: char| c.is_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c);
    let quoted = local.len() > 2 && local.starts_with('"') && local.ends_with('"');
    let local_fits = local.len() <= 64
        && (quoted && !local.chars().any(char::is_control)
            || local.split('.').all(|atom| !atom.is_empty() && atom.chars().all(plain)));
    let literal = domain.starts_with('[') && domain.ends_with(']') && domain.len() > 2;
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.chars().all(|c| c.is_alphanumeric() || c == '-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    local_fits && domain.len() <= 255 && (literal || domain.split('.').all(label))
}

/// Returns whether the text has a scheme and contains only characters that RFC 3986 allows.
fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let mut letters = scheme.bytes();
    let valid_start = letters.next().is_some_and(|first| first.is_ascii_alphabetic());
    let valid_rest =
        letters.all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, b'+' | b'-' | b'.'));
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(&byte);
    let escaped = rest
        .split('%')
        .skip(1)
        .all(|after| after.len() >= 2 && after.bytes().take(2).all(|digit| digit.is_ascii_hexdigit()));
    valid_start && valid_rest && rest.bytes().all(fits) && escaped && rest.matches('#').count() <= 1
}

/// Returns whether the text is a `full-date` of RFC 3339.
fn is_date(text: &str) -> bool {
    let [year, month, day] = *text.splitn(4, '-').collect::<Vec<_>>() else { return false };
    let (Some(year), Some(month), Some(day)) = (digits(year, 4), digits(month, 2), digits(day, 2)) else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return false,
    };
    (1..=days).contains(&day)
}

/// Returns whether the text is a `date-time` of RFC 3339, with its offset.
fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't']) else { return false };
    let (time, offset) = match time.strip_suffix(['Z', 'z']) {
        Some(time) => (time, None),
        None => match time.rfind(['+', '-']) {
            Some(at) => (&time[..at], Some(&time[at + 1..])),
            None => return false,
        },
    };
    let (time, fraction) = time.split_once('.').map_or((time, None), |(time, rest)| (time, Some(rest)));
    let fraction_fits = fraction
        .is_none_or(|fraction| !fraction.is_empty() && fraction.bytes().all(|digit| digit.is_ascii_digit()));
    // A minute may have a leap second.
    is_date(date)
        && is_clock(time, &[23, 59, 60])
        && fraction_fits
        && offset.is_none_or(|offset| is_clock(offset, &[23, 59]))
}

/// Returns whether the text consists of two-digit numbers separated by colons, none above its limit.
fn is_clock(text: &str, limits: &[u32]) -> bool {
    let parts: Vec<_> = text.splitn(limits.len() + 1, ':').collect();
    parts.len() == limits.len()
        && parts.iter().zip(limits).all(|(part, limit)| digits(part, 2).is_some_and(|part| part <= *limit))
}

fn digits(text: &str, count: usize) -> Option<u32> {
    let all = text.len() == count && text.bytes().all(|digit| digit.is_ascii_digit());
    text.parse().ok().filter(|_| all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_accept_valid_texts_and_refuse_others() {
        use StringFormat::{Date, DateTime, Email, Uri};
        for (format, good, bad) in [
            (
                Email,
                &[
                    "ann@example.com",
                    "a.b+c@x",
                    "\"a b\"@example.com",
                    "jörg@bücher.example",
                    "a@[127.0.0.1]",
                ][..],
                &[
                    "",
                    "ann",
                    "@example.com",
                    "ann@",
                    "a b@example.com",
                    "a..b@example.com",
                    "a@-x.com",
                    "a@x..com",
                ][..],
            ),
            (
                Uri,
                &["https://example.com/a?b=c#d", "urn:isbn:1", "mailto:a@b", "http://[::1]:80/%7e"],
                &[
                    "",
                    "example.com",
                    "//example.com",
                    "1a:b",
                    "http://a b",
                    "http://a/%7",
                    "http://é/",
                    "a:#b#c",
                ],
            ),
            (
                Date,
                &["2026-07-28", "2024-02-29", "2000-02-29"],
                &[
                    "",
                    "2026-7-28",
                    "2026-02-29",
                    "1900-02-29",
                    "2026-13-01",
                    "2026-04-31",
                    "28.07.2026",
                    "2026-07-28T00:00:00Z",
                ],
            ),
            (
                DateTime,
                &["2026-07-28T12:00:00Z", "2026-07-28t23:59:60.123+02:00", "2026-07-28T00:00:00-00:30"],
                &[
                    "",
                    "2026-07-28",
                    "2026-07-28T12:00:00",
                    "2026-07-28 12:00:00Z",
                    "2026-07-28T24:00:00Z",
                    "2026-07-28T12:00Z",
                    "2026-07-28T12:00:00.Z",
                    "2026-07-28T12:00:00+2",
                ],
            ),
        ] {
            for text in good {
                assert!(Form::has_format(&format, text), "{text}");
            }
            for text in bad {
                assert!(!Form::has_format(&format, text), "{text}");
            }
        }
    }
}
