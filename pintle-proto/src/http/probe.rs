use http::{HeaderMap, StatusCode, header::WWW_AUTHENTICATE};

/// What the status of an answer to the first request of a client says about the server.
///
/// Which era follows from an answer is decided in one place, for every transport:
/// [`client::Opening`](crate::client::Opening).
///
/// ```
/// use http::{HeaderMap, StatusCode};
/// use pintle_proto::http::Probed;
///
/// let headers = HeaderMap::new();
/// assert_eq!(Probed::of(StatusCode::NOT_FOUND, &headers), Probed::Rejected);
/// assert_eq!(Probed::of(StatusCode::UNAUTHORIZED, &headers), Probed::Challenged);
/// assert_eq!(Probed::of(StatusCode::BAD_GATEWAY, &headers), Probed::Nothing);
/// ```
#[expect(clippy::exhaustive_enums, reason = "a client does one of these four things")]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Probed {
    /// Read the body. A JSON-RPC answer is an [`Event::Answer`](crate::client::Event::Answer), all else is
    /// [`Event::Garbled`](crate::client::Event::Garbled).
    Answered,
    /// It is an [`Event::Status`](crate::client::Event::Status), with the JSON-RPC error if the body is one.
    Rejected,
    /// Get authorized, then ask again.
    Challenged,
    /// Nothing about its era: report it. Asking again later may help.
    Nothing,
}

impl Probed {
    /// Judges the head of an answer, after redirects were followed.
    pub fn of(status: StatusCode, headers: &HeaderMap) -> Self {
        match status {
            StatusCode::UNAUTHORIZED => Self::Challenged,
            StatusCode::FORBIDDEN if headers.contains_key(WWW_AUTHENTICATE) => Self::Challenged,
            // Come and go by themselves.
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS => {
                Self::Nothing
            }
            status if status.is_success() => Self::Answered,
            status if status.is_client_error() => Self::Rejected,
            _ => Self::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn what_a_status_says() {
        let headers = HeaderMap::new();
        for (status, expected) in [
            (200, Probed::Answered),
            (202, Probed::Answered),
            (400, Probed::Rejected),
            (403, Probed::Rejected),
            (404, Probed::Rejected),
            (405, Probed::Rejected),
            (406, Probed::Rejected),
            (401, Probed::Challenged),
            (408, Probed::Nothing),
            (425, Probed::Nothing),
            (429, Probed::Nothing),
            (301, Probed::Nothing),
            (500, Probed::Nothing),
            (502, Probed::Nothing),
        ] {
            assert_eq!(Probed::of(StatusCode::from_u16(status).unwrap(), &headers), expected, "{status}");
        }
        let mut challenge = HeaderMap::new();
        challenge.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        assert_eq!(Probed::of(StatusCode::FORBIDDEN, &challenge), Probed::Challenged);
    }
}
