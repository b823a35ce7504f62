use pintle_types::RequestId;

#[cfg(feature = "client")]
use super::Failed;

/// A message of more bytes than are taken. It was skipped; the next one is whole again.
///
/// ```
/// use pintle::transport::{Incoming, Oversized};
///
/// // In a transport of your own that takes 4 MiB at most:
/// let incoming = Incoming::Oversized(Oversized::new(4 << 20));
/// # let _ = incoming;
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Oversized {
    /// The limit, in bytes.
    pub limit: usize,
    /// The kind of the message, guessed from its first and last bytes.
    pub what: Skipped,
}

/// The presumed kind of a skipped message.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Skipped {
    /// The answer to this request, which will have no other.
    Answer(RequestId),
    /// A request, or a notification if there is no id.
    Call(Option<RequestId>),
    /// Not a message.
    Noise,
    /// Unknown: possibly the answer to any request.
    Unknown,
}

impl Oversized {
    /// A message of unknown kind that exceeds `limit`.
    pub fn new(limit: usize) -> Self {
        Self { limit, what: Skipped::Unknown }
    }

    /// Classifies a message that exceeds `limit`.
    pub(super) fn of(message: &[u8], limit: usize) -> Self {
        let mut ends = Ends::default();
        ends.take(message);
        ends.skipped(limit)
    }

    /// The failure of a request whose answer was skipped.
    #[cfg(feature = "client")]
    pub(crate) fn failed(&self) -> Failed {
        let failed = Failed::new(format!(
            "the answer has more than {} bytes, the most that is taken: raise `Limits::message_bytes` or the `limit` of \
             the transport, or ask for less",
            self.limit
        ));
        Failed { is_too_long: true, ..failed }
    }
}

/// The first and last bytes of a line that is too long: the id is usually near one of the ends.
#[derive(Debug, Default)]
pub(super) struct Ends {
    head: Vec<u8>,
    tail: Vec<u8>,
}

/// Size of the kept beginning: an envelope with a long id.
const HEAD: usize = 512;
const TAIL: usize = 256;

impl Ends {
    /// Appends bytes of the line.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        let room = HEAD.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        let last = &bytes[bytes.len().saturating_sub(TAIL)..];
        let surplus = (self.tail.len() + last.len()).saturating_sub(TAIL);
        self.tail.drain(..surplus);
        self.tail.extend_from_slice(last);
    }

    /// Returns the classified line, which exceeds `limit`.
    pub(super) fn skipped(&self, limit: usize) -> Oversized {
        Oversized { limit, what: self.what() }
    }

    /// Classifies the line.
    fn what(&self) -> Skipped {
        let mut rest = self.head.trim_ascii_start();
        match rest.first() {
            Some(b'{') => rest = &rest[1..],
            // An array may be a batch of answers.
            Some(b'[') => return Skipped::Unknown,
            _ => return Skipped::Noise,
        }
        let (mut id, mut is_call, mut is_answer) = (None, false, false);
        while let Some((name, value)) = member(rest) {
            match name {
                b"method" => is_call = true,
                b"result" | b"error" => is_answer = true,
                _ => {}
            }
            let Some((scalar, more)) = scalar(value) else { break };
            if name == b"id" {
                id = serde_json::from_slice(scalar).ok();
            }
            rest = more;
        }
        let id = id.or_else(|| self.last_id());
        match (is_call, is_answer, id) {
            (true, false, id) => Skipped::Call(id),
            // Some answer request `7` as `"7"`.
            (false, true, Some(id)) => Skipped::Answer(id.as_number().map_or(id, RequestId::Number)),
            _ => Skipped::Unknown,
        }
    }

    /// The id, if it is the last member: what comes before the brace that ends the line is a member of the whole.
    fn last_id(&self) -> Option<RequestId> {
        const NAME: &[u8] = b"\"id\"";
        let tail = self.tail.trim_ascii_end().strip_suffix(b"}")?;
        let at = tail.windows(NAME.len()).rposition(|window| window == NAME)?;
        let before = tail.get(..at)?.trim_ascii_end().last();
        let value = tail.get(at + NAME.len()..)?.trim_ascii_start().strip_prefix(b":")?;
        // A number or a text and nothing else: a brace behind it would mean that it belongs to a part.
        matches!(before, Some(b',' | b'{')).then(|| serde_json::from_slice(value).ok()).flatten()
    }
}

/// The name of the next member, and what comes behind its colon.
fn member(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = rest.trim_ascii_start();
    let (name, rest) = text(rest)?;
    Some((name, rest.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start()))
}

/// A value that is no object or array, and what comes behind its comma.
fn scalar(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = match rest.first()? {
        b'{' | b'[' => return None,
        b'"' => rest.len() - text(rest)?.1.len(),
        _ => rest.iter().position(|byte| matches!(byte, b',' | b'}' | b' '))?,
    };
    let (value, rest) = rest.split_at_checked(end)?;
    Some((value, rest.trim_ascii_start().strip_prefix(b",")?))
}

/// A text between its quotes, as it is written, and what comes behind it.
fn text(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = rest.strip_prefix(b"\"")?;
    let mut escaped = false;
    let end = rest.iter().position(|byte| match byte {
        _ if escaped => {
            escaped = false;
            false
        }
        b'\\' => {
            escaped = true;
            false
        }
        byte => *byte == b'"',
    })?;
    Some((rest.get(..end)?, rest.get(end + 1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_line_was_is_read_off_its_ends() {
        let long = "x".repeat(2 * HEAD);
        let answer = |id: RequestId| Skipped::Answer(id);
        let call = |id: Option<RequestId>| Skipped::Call(id);
        for (line, expected) in [
            (format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"a":"{long}","id":1}}}}"#), answer(7.into())),
            (format!(r#"{{"jsonrpc":"2.0","id":"a\"b","result":{{"a":"{long}"}}}}"#), answer("a\"b".into())),
            (format!(r#"{{"jsonrpc":"2.0","id":"7","result":{{"a":"{long}"}}}}"#), answer(7.into())),
            (format!(r#"{{ "id" : 7 , "error" : {{"code":1,"message":"{long}"}}}}"#), answer(7.into())),
            (format!(r#"{{"result":{{"a":"{long}"}},"jsonrpc":"2.0","id":7}}"#), answer(7.into())),
            (
                format!(r#"{{"result":{{"a":"{long}"}},"jsonrpc":"2.0","id":"seven" }} "#),
                answer("seven".into()),
            ),
            (format!(r#"{{"jsonrpc":"2.0","result":{{"a":"{long}","id":7}}}}"#), Skipped::Unknown),
            (format!(r#"{{"jsonrpc":"2.0","result":{{"a":"{long},\"id\":7"}}}}"#), Skipped::Unknown),
            (format!(r#"{{"jsonrpc":"2.0","id":7,"x":{{"a":"{long}"}},"result":{{}}}}"#), Skipped::Unknown),
            (
                format!(r#"{{"jsonrpc":"2.0","id":7,"method":"m","params":{{"a":"{long}"}}}}"#),
                call(Some(7.into())),
            ),
            (
                format!(r#"{{"method":"m","params":{{"a":"{long}"}},"jsonrpc":"2.0","id":7}}"#),
                call(Some(7.into())),
            ),
            (format!(r#"{{"jsonrpc":"2.0","method":"m","params":{{"a":"{long}"}}}}"#), call(None)),
            (format!(r#"[{{"jsonrpc":"2.0","id":7,"result":{{"a":"{long}"}}}}]"#), Skipped::Unknown),
            (format!(r#"{{"{long}":1}}"#), Skipped::Unknown),
            (long.clone(), Skipped::Noise),
        ] {
            for piece in [1, 7, 300, line.len()] {
                let mut ends = Ends::default();
                line.as_bytes().chunks(piece).for_each(|bytes| ends.take(bytes));
                assert_eq!(ends.what(), expected, "{piece} {line}");
                assert!(ends.head.len() <= HEAD && ends.tail.len() <= TAIL);
            }
        }
    }
}
