use http::{HeaderMap, StatusCode, header::WWW_AUTHENTICATE};

/// The classification of a response to a client's first request, by its status.
///
/// The era that follows from a response is decided in one place, for every transport:
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
    /// The body is to be read. A JSON-RPC response is an [`OpeningEvent::Answer`](crate::client::OpeningEvent::Answer),
    /// anything else is [`OpeningEvent::Garbled`](crate::client::OpeningEvent::Garbled).
    Answered,
    /// The request was rejected: an [`OpeningEvent::Status`](crate::client::OpeningEvent::Status), with the JSON-RPC
    /// error if the body is one.
    Rejected,
    /// Authorization is required: authorize, then send the request again.
    Challenged,
    /// The response says nothing about the server's era: report it. A later retry may succeed.
    Nothing,
}

impl Probed {
    /// Classifies the head of a response, after redirects were followed.
    pub fn of(status: StatusCode, headers: &HeaderMap) -> Self {
        match status {
            StatusCode::UNAUTHORIZED => Self::Challenged,
            StatusCode::FORBIDDEN if headers.contains_key(WWW_AUTHENTICATE) => Self::Challenged,
            // Transient conditions.
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
