use pintle::types::schema::StringFormat;

/// Returns what a text of this format is, for messages. `None` if the format is not known: any text is accepted then.
pub(super) fn described(format: &StringFormat) -> Option<&'static str> {
    Some(match format {
        StringFormat::Email => "an e-mail address",
        StringFormat::Uri => "a URI such as https://example.com",
        StringFormat::Date => "a date as YYYY-MM-DD",
        StringFormat::DateTime => "a time as YYYY-MM-DDThh:mm:ssZ",
        _ => return None,
    })
}

/// Returns whether a text has a format. It is a check for slips: the server is the judge.
pub(super) fn has(format: &StringFormat, text: &str) -> bool {
    match format {
        StringFormat::Email => is_email(text),
        StringFormat::Uri => is_uri(text),
        StringFormat::Date => is_date(text),
        StringFormat::DateTime => is_time(text),
        _ => true,
    }
}

fn is_email(text: &str) -> bool {
    let Some((name, host)) = text.rsplit_once('@') else { return false };
    let is_label = |label: &str| !label.is_empty() && !label.starts_with('-') && !label.ends_with('-');
    !name.is_empty()
        && !text.chars().any(|letter| letter.is_whitespace() || letter.is_control())
        && (host.starts_with('[') && host.ends_with(']') || host.split('.').all(is_label))
}

fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(allowed)
        && !rest.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_graphic() && !br#"<>"\^`{|}"#.contains(&byte))
}

fn is_date(text: &str) -> bool {
    let parts: Vec<_> = text.split('-').collect();
    let [year, month, day] = parts[..] else { return false };
    let (Some(year), Some(month), Some(day)) = (digits(year, 4), digits(month, 2), digits(day, 2)) else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u32::from(leap),
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day)
}

fn is_time(text: &str) -> bool {
    let Some((date, rest)) = text.split_once(['T', 't', ' ']) else { return false };
    let Some(at) = rest.find(['Z', 'z', '+', '-']) else { return false };
    let (clock, zone) = rest.split_at(at);
    let clock = match clock.split_once('.') {
        Some((clock, fraction)) if digits(fraction, fraction.len()).is_some() => clock,
        Some(_) => return false,
        None => clock,
    };
    let is_clock = |text: &str, limits: &[u32]| {
        let parts: Vec<_> = text.split(':').collect();
        parts.len() == limits.len()
            && parts
                .iter()
                .zip(limits)
                .all(|(part, limit)| digits(part, 2).is_some_and(|part| part <= *limit))
    };
    let is_zone = match zone.strip_prefix(['+', '-']) {
        Some(offset) => is_clock(offset, &[23, 59]),
        None => zone.len() == 1,
    };
    // A leap second is the sixtieth.
    is_date(date) && is_clock(clock, &[23, 59, 60]) && is_zone
}

fn digits(text: &str, length: usize) -> Option<u32> {
    let fits = length > 0 && text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit());
    // A fraction may be longer than any number.
    fits.then(|| text.parse().unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_found_and_what_is_right_is_accepted() {
        for (format, right, wrong) in [
            (
                StringFormat::Email,
                &["ada@example.com", "a.b+c@x", "a@[127.0.0.1]", "ü@例え.jp"][..],
                &["ada", "@x", "a@", "a b@x", "a@x..y", "a@-x"][..],
            ),
            (
                StringFormat::Uri,
                &["https://example.com/?q=1#x", "mailto:a@b", "urn:x:y"],
                &["example.com", "https:", "1x:y", "https://a b", "https://ü"],
            ),
            (
                StringFormat::Date,
                &["2024-02-29", "1999-12-31"],
                &["2023-02-29", "2024-13-01", "2024-4-1", "2024-04-31", "24-01-01", "2024-01-00"],
            ),
            (
                StringFormat::DateTime,
                &["2024-12-31T23:59:60Z", "2024-01-01t00:00:00.123+02:00"],
                &[
                    "2024-01-01",
                    "2024-01-01T00:00:00",
                    "2024-01-01T24:00:00Z",
                    "2024-01-01T00:00:00.Z",
                    "2024-01-01T00:00Z",
                ],
            ),
        ] {
            for text in right {
                assert!(has(&format, text), "{text}");
            }
            for text in wrong {
                assert!(!has(&format, text), "{text}");
            }
        }
        assert!(has(&StringFormat::Other("phone".into()), "anything"));
    }
}
