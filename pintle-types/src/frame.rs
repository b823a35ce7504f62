use std::fmt;

use serde::de::{self, SeqAccess};
use serde_json::value::RawValue;

use crate::{Malformed, MalformedKind as Kind, Message, RpcError};

/// What one line, or one HTTP body, held: a message, or a batch of them.
///
/// Only one revision knows batches. Whether one is welcome is for the protocol engine to say; here it is just split,
/// so that nobody further in has to know of it.
///
/// ```
/// use pintle_types::{Frame, Message};
///
/// let line = br#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2}]"#;
/// let Ok(Frame::Batch(items)) = Frame::parse(line, 100) else { panic!("a batch") };
/// assert!(matches!(&items[0], Ok(Message::Request(request)) if request.method == "ping"));
/// let reply = items[1].as_ref().unwrap_err().reply().unwrap();
/// assert_eq!((reply.id, reply.result.unwrap_err().code.0), (Some(2.into()), -32600));
/// ```
#[expect(clippy::exhaustive_enums, reason = "JSON-RPC has these two")]
#[derive(Debug, PartialEq)]
pub enum Frame {
    /// A message on its own.
    One(Message),
    /// An array of messages. A bad one does not spoil the others.
    Batch(Vec<Result<Message, Box<Malformed>>>),
}

/// What some systems put before a text.
const BOM: &[u8] = "\u{feff}".as_bytes();

impl Frame {
    /// Reads one frame; a batch of more than `most` messages is refused as a whole.
    pub fn parse(bytes: &[u8], most: usize) -> Result<Self, Box<Malformed>> {
        // One byte order mark, not as many as somebody sends.
        let bytes = bytes.strip_prefix(BOM).unwrap_or(bytes);
        if bytes.trim_ascii_start().first() != Some(&b'[') {
            return Message::parse(bytes).map(Self::One);
        }
        let text = std::str::from_utf8(bytes)
            .map_err(|_| Box::new(Malformed::unclear(RpcError::parse_error("the message is not UTF-8"))))?;
        Self::parse_batch(text, most)
    }

    /// The same, from text that it may keep: see [`Message::parse_text`].
    pub fn parse_text(text: String, most: usize) -> Result<Self, Box<Malformed>> {
        if text.trim_ascii_start().starts_with('[') {
            return Self::parse_batch(&text, most);
        }
        match text.strip_prefix('\u{feff}') {
            Some(rest) => Self::parse(rest.as_bytes(), most),
            None => Message::parse_text(text).map(Self::One),
        }
    }

    fn parse_batch(text: &str, most: usize) -> Result<Self, Box<Malformed>> {
        let refuse = |error| Box::new(Malformed::unclear(error));
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let items = de::Deserializer::deserialize_seq(&mut deserializer, Items { most })
            .and_then(|items| deserializer.end().map(|()| items))
            .map_err(|error| refuse(RpcError::parse_error(format!("not JSON: {error}"))))?;
        match items {
            None => Err(refuse(RpcError::invalid_request(format!(
                "a batch of more than {most} messages: send smaller ones"
            )))),
            Some(items) if items.is_empty() => {
                Err(refuse(RpcError::invalid_request("an empty batch: send at least one message")))
            }
            Some(items) => {
                Ok(Self::Batch(items.into_iter().map(|item| Message::parse_str(item.get())).collect()))
            }
        }
    }
}

impl Malformed {
    fn unclear(error: RpcError) -> Self {
        Self { id: None, kind: Kind::Unclear, fault: error.message.clone(), error }
    }
}

/// Up to `most` items; `None` if there are more.
struct Items {
    most: usize,
}

impl<'de> de::Visitor<'de> for Items {
    type Value = Option<Vec<&'de RawValue>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            if items.len() == self.most {
                // Read on to the end, or serde_json would call the rest a syntax error.
                while seq.next_element::<de::IgnoredAny>()?.is_some() {}
                return Ok(None);
            }
            items.push(item);
        }
        Ok(Some(items))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Frame::parse(text.as_bytes(), 2).unwrap_err().error.to_string()
    }

    #[test]
    fn one_byte_order_mark_is_skipped_and_a_million_are_refused() {
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        assert!(Frame::parse(format!("\u{feff}{ping}").as_bytes(), 2).is_ok());
        assert!(Frame::parse(format!("\u{feff}[{ping}]").as_bytes(), 2).is_ok());
        let marks = "\u{feff}".repeat(1_000_000);
        assert!(Frame::parse(marks.as_bytes(), 2).is_err());
        assert!(Frame::parse_text(marks, 2).is_err());
    }

    #[test]
    fn a_batch_is_split_and_a_bad_message_spoils_only_itself() {
        let text = r#" [{"jsonrpc":"2.0","id":1,"method":"ping"}, 5]"#;
        let Ok(Frame::Batch(items)) = Frame::parse(text.as_bytes(), 2) else { panic!("a batch") };
        assert!(items[0].is_ok());
        assert!(items[1].as_ref().is_err_and(|bad| bad.error.code.0 == -32600));
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_message() {
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        for text in [format!("\u{feff}{ping}"), format!("\u{feff} {ping}")] {
            assert!(matches!(Message::parse(text.as_bytes()), Ok(Message::Request(_))), "{text}");
            assert!(matches!(Frame::parse(text.as_bytes(), 2), Ok(Frame::One(_))), "{text}");
            assert!(matches!(Frame::parse_text(text.clone(), 2), Ok(Frame::One(_))), "{text}");
        }
        let batch = format!("\u{feff}[{ping}]");
        assert!(matches!(Frame::parse(batch.as_bytes(), 2), Ok(Frame::Batch(_))));
        assert!(matches!(Frame::parse_text(batch, 2), Ok(Frame::Batch(_))));
        // One is enough.
        assert!(Message::parse(format!("\u{feff}\u{feff}{ping}").as_bytes()).is_err());
    }

    #[test]
    fn batches_are_bounded_and_never_empty() {
        assert_eq!(refused("[]"), "an empty batch: send at least one message (-32600)");
        assert_eq!(refused("[1,2,3,4]"), "a batch of more than 2 messages: send smaller ones (-32600)");
        assert!(refused("[1,2").starts_with("not JSON"));
        assert!(refused("[1] 2").starts_with("not JSON"));
    }
}
