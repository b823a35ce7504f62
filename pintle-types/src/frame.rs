use std::fmt;

use serde::de::{self, SeqAccess};
use serde_json::value::RawValue;

use crate::{Malformed, Message, RpcError, envelope, message::BYTE_ORDER_MARK};

/// The content of one line or one HTTP body: a message, or a batch of messages.
///
/// Only one revision has batches. The protocol engine decides whether a batch is allowed; here it is only split.
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
    /// A single message.
    One(Message),
    /// An array of messages. A malformed one does not affect the others.
    Batch(Vec<Result<Message, Box<Malformed>>>),
}

impl Frame {
    /// Reads one frame. A batch of more than `limit` messages is refused as a whole.
    ///
    /// # Errors
    ///
    /// The bytes are neither a message nor a batch.
    pub fn parse(bytes: &[u8], limit: usize) -> Result<Self, Box<Malformed>> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::parse_str(text, limit),
            Err(_) => Err(Box::new(Malformed::not_utf8())),
        }
    }

    /// Reads one frame from its text. A batch of more than `limit` messages is refused as a whole.
    ///
    /// # Errors
    ///
    /// The text is neither a message nor a batch.
    pub fn parse_str(text: &str, limit: usize) -> Result<Self, Box<Malformed>> {
        let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        match text.trim_ascii_start().starts_with('[') {
            true => Self::parse_batch(text, limit),
            false => envelope::read(text).map(Self::One),
        }
    }

    /// Reads one frame from its text, which becomes that of the params or the result: a long message is not copied. A batch of
    /// more than `limit` messages is refused as a whole.
    ///
    /// # Errors
    ///
    /// The text is neither a message nor a batch.
    pub fn parse_string(text: String, limit: usize) -> Result<Self, Box<Malformed>> {
        // Anything else goes the usual way.
        match text.starts_with('{') {
            true => envelope::read_owned(text).map(Self::One),
            false => Self::parse_str(&text, limit),
        }
    }

    fn parse_batch(text: &str, limit: usize) -> Result<Self, Box<Malformed>> {
        let refuse = |error| Box::new(Malformed::unclear(error));
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let items = de::Deserializer::deserialize_seq(&mut deserializer, Items { limit })
            .and_then(|items| deserializer.end().map(|()| items))
            .map_err(|error| refuse(RpcError::parse_error(format!("not JSON: {error}"))))?;
        match items {
            None => Err(refuse(RpcError::invalid_request(format!(
                "a batch of more than {limit} messages: send smaller ones"
            )))),
            Some(items) if items.is_empty() => {
                Err(refuse(RpcError::invalid_request("an empty batch: send at least one message")))
            }
            Some(items) => {
                Ok(Self::Batch(items.into_iter().map(|item| envelope::read(item.get())).collect()))
            }
        }
    }
}

/// Reads up to `limit` items, or `None` if there are more.
struct Items {
    limit: usize,
}

impl<'de> de::Visitor<'de> for Items {
    type Value = Option<Vec<&'de RawValue>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            if items.len() == self.limit {
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
        assert!(Frame::parse_str(&marks, 2).is_err());
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
            assert!(matches!(Frame::parse_str(&text, 2), Ok(Frame::One(_))), "{text}");
            assert!(matches!(Frame::parse_string(text.clone(), 2), Ok(Frame::One(_))), "{text}");
        }
        let batch = format!("\u{feff}[{ping}]");
        assert!(matches!(Frame::parse(batch.as_bytes(), 2), Ok(Frame::Batch(_))));
        assert!(matches!(Frame::parse_str(&batch, 2), Ok(Frame::Batch(_))));
        assert!(matches!(Frame::parse_string(batch, 2), Ok(Frame::Batch(_))));
        for two in [format!("\u{feff}\u{feff}{ping}"), format!("\u{feff}\u{feff}[{ping}]")] {
            assert!(Message::parse(two.as_bytes()).is_err(), "{two}");
            assert!(Frame::parse(two.as_bytes(), 2).is_err(), "{two}");
        }
    }

    #[test]
    fn batches_are_bounded_and_never_empty() {
        assert_eq!(refused("[]"), "an empty batch: send at least one message (-32600)");
        assert_eq!(refused("[1,2,3,4]"), "a batch of more than 2 messages: send smaller ones (-32600)");
        assert!(refused("[1,2").starts_with("not JSON"));
        assert!(refused("[1] 2").starts_with("not JSON"));
    }
}
