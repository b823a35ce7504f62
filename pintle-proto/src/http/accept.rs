use http::header::ACCEPT;

use super::{
    Head, Refusal,
    head::{Field, trim},
};

/// The response types that a client accepts.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Accepts {
    /// Whether `application/json` is acceptable.
    pub json: bool,
    /// Whether `text/event-stream` is acceptable.
    pub events: bool,
}

impl Accepts {
    const BOTH: Self = Self { json: true, events: true };

    /// Reads `Accept`. Without the header, every type is acceptable (RFC 9110).
    pub fn read(head: &Head<'_>) -> Self {
        match head.accept {
            Field::Absent => Self::BOTH,
            Field::Once(value) if value == USUAL => Self::BOTH,
            Field::Once(_) | Field::Repeated => {
                let lines = head.headers.get_all(ACCEPT).iter().map(http::HeaderValue::as_bytes);
                Self::parse(lines.flat_map(|line| line.split(|&byte| byte == b',')))
            }
        }
    }

    fn parse<'a>(ranges: impl Iterator<Item = &'a [u8]>) -> Self {
        let (mut json, mut events) = (Best::default(), Best::default());
        for range in ranges {
            let mut parts = range.split(|&byte| byte == b';');
            let name = trim(parts.next().unwrap_or_default());
            let wanted = parts.all(|part| !is_zero_quality(trim(part)));
            json.offer(name, "application/*", JSON, wanted);
            events.offer(name, "text/*", EVENTS, wanted);
        }
        Self { json: json.wanted, events: events.wanted }
    }
}

/// Refuses with 415 unless `Content-Type` is JSON. Parameters such as `charset` are ignored: JSON is UTF-8 in any case.
pub(super) fn check_content_type(head: &Head<'_>) -> Result<(), Refusal> {
    let Field::Once(value) = head.content_type else { return Err(Refusal::unsupported_media_type()) };
    if value == JSON {
        return Ok(());
    }
    let name = value.as_bytes().split(|&byte| byte == b';').next().unwrap_or_default();
    match trim(name).eq_ignore_ascii_case(JSON.as_bytes()) {
        true => Ok(()),
        false => Err(Refusal::unsupported_media_type()),
    }
}

pub(super) const JSON: &str = "application/json";
pub(super) const EVENTS: &str = "text/event-stream";
/// The `Accept` value that the specification requires of clients, and that nearly all of them send.
pub(super) const USUAL: &str = "application/json, text/event-stream";

/// Whether the most specific media range so far accepts a type.
#[derive(Default)]
struct Best {
    specificity: u8,
    wanted: bool,
}

impl Best {
    fn offer(&mut self, name: &[u8], family: &str, exact: &str, wanted: bool) {
        let specificity = match name {
            _ if name.eq_ignore_ascii_case(exact.as_bytes()) => 3,
            _ if name.eq_ignore_ascii_case(family.as_bytes()) => 2,
            b"*/*" => 1,
            _ => return,
        };
        if specificity > self.specificity {
            *self = Self { specificity, wanted };
        } else if specificity == self.specificity {
            self.wanted |= wanted;
        }
    }
}

fn is_zero_quality(parameter: &[u8]) -> bool {
    let [b'q' | b'Q', rest @ ..] = parameter else { return false };
    let [b'=', rest @ ..] = trim(rest) else { return false };
    match trim(rest) {
        [b'0'] => true,
        [b'0', b'.', digits @ ..] => digits.iter().all(|&digit| digit == b'0'),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Method, Uri};

    use super::*;

    fn accepts(lines: &[&str]) -> (bool, bool) {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(ACCEPT, line.parse().unwrap());
        }
        let uri = Uri::from_static("/");
        let Accepts { json, events } = Accepts::read(&Head::new(&Method::POST, &uri, &headers));
        (json, events)
    }

    #[test]
    fn what_may_be_answered() {
        for (lines, expected) in [
            (&[][..], (true, true)),
            (&["application/json, text/event-stream"], (true, true)),
            (&["text/event-stream, application/json"], (true, true)),
            (&["application/json", "text/event-stream"], (true, true)),
            (&["application/json;q=0.9 ,\ttext/event-stream ; q=1.0"], (true, true)),
            (&["Application/JSON,TEXT/Event-Stream"], (true, true)),
            (&["*/*"], (true, true)),
            (&["application/json"], (true, false)),
            (&["text/event-stream"], (false, true)),
            (&["application/*"], (true, false)),
            (&["text/*"], (false, true)),
            (&["text/html"], (false, false)),
            (&[""], (false, false)),
            (&["application/jsonp, text/event-streams"], (false, false)),
            (&["application/json;q=0, */*"], (false, true)),
            (&["*/*, application/json; q=0.000"], (false, true)),
            (&["*/*;q=0, text/event-stream"], (false, true)),
            (&["application/*;q=0, application/json"], (true, false)),
            (&["application/json;Q = 0"], (false, false)),
            (&["application/json;q=0.001"], (true, false)),
            (&["application/json;charset=utf-8"], (true, false)),
            // Of two ranges for the same type, the one that accepts it counts, in either order.
            (&["application/json;q=0, application/json"], (true, false)),
            (&["application/json, application/json;q=0"], (true, false)),
        ] {
            assert_eq!(accepts(lines), expected, "{lines:?}");
        }
    }

    #[test]
    fn the_body_is_declared_as_json() {
        for (value, fine) in [
            (Some("application/json"), true),
            (Some("application/json; charset=utf-8"), true),
            (Some("Application/Json ;charset=\"UTF-8\""), true),
            (Some("text/plain"), false),
            (Some("application/json-rpc"), false),
            (Some("application/x-www-form-urlencoded"), false),
            (Some(""), false),
            (None, false),
        ] {
            let headers =
                value.map(|value| (http::header::CONTENT_TYPE, value.parse().unwrap())).into_iter().collect();
            let uri = Uri::from_static("/");
            let checked = Head::new(&Method::POST, &uri, &headers).check_content_type();
            assert_eq!(checked.is_ok(), fine, "{value:?}");
            if let Err(refusal) = checked {
                assert_eq!(refusal.status, 415);
            }
        }
    }
}
