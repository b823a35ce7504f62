use pintle::{
    Error,
    client::OpenError,
    transport::{Delivery, Failed},
};

use super::Endpoint;
use crate::failure::{Exit, Failure};

impl Endpoint {
    /// Turns an error of a connection into a failure: its exit code, its message in the words of the command line, and what to
    /// type next.
    pub(crate) fn explain(&self, error: &Error) -> Failure {
        let (exit, message) = describe(error);
        let message = match (error, self.options.timeout) {
            (Error::Timeout(_), given) => {
                let given = given.map(|given| format!(" within {given:?}")).unwrap_or_default();
                format!("no answer{given}: give it more time, or ask for less")
            }
            _ => worded(error, message),
        };
        let next = match exit {
            // Who is known and may not, gains nothing from another login.
            Exit::Authorization if error.status() == Some(403) => self.line("doctor", &[]),
            Exit::Authorization
                if self.has_token() || self.has_configured_token() || !self.target.has_url() =>
            {
                self.line_with("info", "--token-env NAME")
            }
            Exit::Authorization => self.line("login", &[]),
            Exit::Timeout => self.line_with("info", "--timeout 60s"),
            // The server has said what is wrong.
            Exit::Server if matches!(error, Error::Rpc(_)) => String::new(),
            Exit::Server => self.line("doctor", &[]),
            Exit::Usage => self.line("info", &[]),
            _ => self.next_if_unreachable(),
        };
        Failure { status: error.status(), ..Failure::new(exit, message, next) }
    }
}

fn describe(error: &Error) -> (Exit, String) {
    match error {
        Error::Open { error: cause, seen } => {
            let (exit, message) = opening(cause);
            match seen {
                Some(seen) => (exit, format!("{message} ({seen})")),
                None => (exit, message),
            }
        }
        Error::Failed(failed) => transit(failed),
        Error::Timeout(_) => (Exit::Timeout, error.to_string()),
        Error::Closed(_) | Error::Io(_) => (Exit::Unreachable, error.to_string()),
        Error::Tool(_) => (Exit::Tool, error.to_string()),
        Error::Misuse(_) | Error::Refused(_) => (Exit::Usage, error.to_string()),
        Error::Rpc(error) => (Exit::Server, format!("the server returned an error: {error}")),
        Error::Protocol(violation) => {
            (Exit::Server, format!("the server violated the protocol: {violation}"))
        }
        _ => (Exit::Server, error.to_string()),
    }
}

/// Describes a connection that could not be opened.
fn opening(error: &OpenError) -> (Exit, String) {
    match error {
        OpenError::Silent { method } => (
            Exit::Timeout,
            format!(
                "the server did not answer `{method}`: check that it is an MCP server, or give it more time"
            ),
        ),
        OpenError::Rejected { status, reason, .. } if is_denied(*status) => denied(*status, Some(reason)),
        OpenError::Garbled { status: Some(status), .. } if is_denied(*status) => denied(*status, None),
        OpenError::Refused { .. } | OpenError::NothingInCommon { .. } | OpenError::Violation(_) => {
            (Exit::Server, error.to_string())
        }
        OpenError::TooOld { error } => (
            Exit::Server,
            format!(
                "the server does not know `server/discover`: {error}: it speaks older revisions; leave out `--era`"
            ),
        ),
        OpenError::NothingToOffer => {
            (Exit::Usage, "`--era` and `--revision` exclude each other: leave out one of them".to_owned())
        }
        _ => (Exit::Unreachable, error.to_string()),
    }
}

/// Describes a request that failed on its way.
fn transit(failed: &Failed) -> (Exit, String) {
    match failed.status {
        // Not sent: the reason is that of the login.
        Some(status)
            if is_denied(status) && failed.delivery == Delivery::Never && failed.reason.is_none() =>
        {
            (Exit::Authorization, failed.to_string())
        }
        Some(status) if is_denied(status) => denied(status, failed.reason.as_deref()),
        Some(status @ (404 | 405)) => (
            Exit::Unreachable,
            format!(
                "{}HTTP status {status}: the URL is not that of an MCP endpoint",
                reason(failed.reason.as_deref())
            ),
        ),
        Some(_) => (Exit::Server, failed.to_string()),
        None if failed.delivery == Delivery::Never => (Exit::Unreachable, failed.to_string()),
        None => (Exit::Server, failed.to_string()),
    }
}

fn is_denied(status: u16) -> bool {
    matches!(status, 401 | 403)
}

fn denied(status: u16, text: Option<&str>) -> (Exit, String) {
    let text = reason(text);
    let message = match status {
        401 => format!("{text}HTTP status 401: the server requires a token, or does not accept this one"),
        _ => format!("{text}HTTP status {status}: the server does not allow this"),
    };
    (Exit::Authorization, message)
}

fn reason(text: Option<&str>) -> String {
    text.filter(|text| !text.is_empty()).map(|text| format!("{text}: ")).unwrap_or_default()
}

/// Returns a message in the words of the command line. What the server has said stays as it is.
fn worded(error: &Error, message: String) -> String {
    match error {
        Error::Rpc(_) | Error::Tool(_) => message,
        _ => without_api(message),
    }
}

/// Returns a message without advice for programmers: what follows the last colon before a name of the library.
///
/// An error of the library is one text, which ends with what to write in a program: there is no code for that ending. It is left out, and
/// nothing is decided by it.
fn without_api(message: String) -> String {
    let names_api = |part: &str| part.contains("::") || part == "Limits";
    let Some(at) = message
        .split('`')
        .scan(0, |at, part| {
            let start = *at;
            *at += part.len() + 1;
            Some((start, part))
        })
        .find(|(_, part)| names_api(part))
        .map(|(at, _)| at)
    else {
        return message;
    };
    match message[..at].rsplit_once(": ") {
        Some((reason, _)) => format!("{reason}: ask for less"),
        None => message,
    }
}

#[cfg(test)]
mod tests {
    use pintle::types::RpcError;

    use super::*;

    #[test]
    fn advice_for_programmers_is_left_out() {
        for (message, shown) in [
            ("the answer is long: raise `Limits::answer`", "the answer is long: ask for less"),
            (
                "it has 5 bytes, the most: raise `Limits::a` or the `limit`",
                "it has 5 bytes, the most: ask for less",
            ),
            (
                "the answer of `http://a/mcp` is longer than 5 bytes: ask for less, or raise `message_bytes` of the client's `Limits`",
                "the answer of `http://a/mcp` is longer than 5 bytes: ask for less",
            ),
            ("no such tool: `a:b`: look", "no such tool: `a:b`: look"),
        ] {
            assert_eq!(without_api(message.to_owned()), shown);
        }
    }

    #[test]
    fn what_the_server_says_stays() {
        let error = Error::Rpc(RpcError::invalid_params("no such type: `std::vec`: look"));
        let (_, message) = describe(&error);
        let shown = worded(&error, message);
        assert!(shown.contains("no such type: `std::vec`: look"), "{shown}");
    }
}
