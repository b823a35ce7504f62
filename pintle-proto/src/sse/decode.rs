use std::{fmt, mem};

/// Decodes a stream of events from chunks of any size.
///
/// Every byte is read once, however the stream is chunked. Only the current line and event are buffered, within
/// [`DecoderLimits`]; an event that is cut off by the end of the stream is never returned.
///
/// ```
/// use pintle_proto::sse::Decoder;
///
/// let mut decoder = Decoder::default();
/// let mut messages = Vec::new();
/// for mut piece in [&b"id: 1\ndata:\n\nid: 2\nda"[..], b"ta: {\"a\":", b"1}\r\n\r\n: alive\n"] {
///     while let Some(event) = decoder.next(&mut piece)? {
///         if !event.data.is_empty() {
///             messages.push(event.data);
///         }
///     }
/// }
/// assert_eq!(messages, [r#"{"a":1}"#]);
/// assert_eq!(decoder.last_event_id(), "2");
/// # Ok::<(), pintle_proto::sse::DecodeError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    limits: DecoderLimits,
    /// The start of an incomplete line.
    line: Vec<u8>,
    /// Whether the last line ended with CR, so that an LF now belongs to it.
    after_cr: bool,
    /// Whether the first line, which may start with a byte order mark, was read.
    started: bool,
    event: Event,
    /// Whether the current event has a field that is reported.
    pending: bool,
    last_event_id: String,
    failed: Option<DecodeError>,
}

/// A decoded event.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Event {
    /// The event type, unless it is `message`.
    pub name: Option<String>,
    /// The id, if the event has one.
    pub id: Option<String>,
    /// The reconnection delay, in milliseconds.
    pub retry: Option<u64>,
    /// The data, lines joined by line feeds. Empty in an event that has only an id or a reconnection delay.
    pub data: String,
}

/// The maximum size of an id, in bytes. A longer one is ignored.
const MAX_ID: usize = 4096;

/// The limits on what a decoder buffers.
#[expect(clippy::exhaustive_structs, reason = "two numbers")]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DecoderLimits {
    /// The maximum size of a line, in bytes.
    pub line: usize,
    /// The maximum size of an event's data, in bytes.
    pub event: usize,
}

impl Default for DecoderLimits {
    fn default() -> Self {
        // A line includes the name of its field.
        Self { line: (16 << 20) + 64, event: 16 << 20 }
    }
}

/// The error for a stream that cannot be decoded.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DecodeError {
    /// A line is over the limit.
    LineTooLong {
        /// The limit, in bytes.
        limit: usize,
    },
    /// An event is over the limit.
    EventTooLong {
        /// The limit, in bytes.
        limit: usize,
    },
    /// A field is not UTF-8. Replacement characters would silently change messages.
    NotUtf8,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LineTooLong { limit } => {
                write!(f, "a line of the event stream is longer than {limit} bytes")
            }
            Self::EventTooLong { limit } => write!(f, "an event of the stream is longer than {limit} bytes"),
            Self::NotUtf8 => f.write_str("the event stream is not UTF-8"),
        }
    }
}

impl std::error::Error for DecodeError {}

impl Decoder {
    /// Creates a decoder for a new stream.
    pub fn new(limits: DecoderLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Consumes `input` up to the end of the next event, or completely if none ends there.
    ///
    /// After an error it always returns the same error: the start of the next event is unknown.
    pub fn next(&mut self, input: &mut &[u8]) -> Result<Option<Event>, DecodeError> {
        if let Some(fault) = self.failed {
            return Err(fault);
        }
        let outcome = self.advance(input);
        self.failed = outcome.as_ref().err().copied();
        outcome
    }

    /// Returns the id that a reconnecting client sends as `Last-Event-ID`: that of the last complete event with an id.
    pub fn last_event_id(&self) -> &str {
        &self.last_event_id
    }

    /// Resets the decoder for the stream of the next connection. Only the last event id is kept.
    pub fn reconnect(&mut self) {
        *self = Self { last_event_id: mem::take(&mut self.last_event_id), ..Self::new(self.limits) };
    }

    fn advance(&mut self, input: &mut &[u8]) -> Result<Option<Event>, DecodeError> {
        if self.after_cr
            && let Some(&first) = input.first()
        {
            self.after_cr = false;
            *input = &input[usize::from(first == b'\n')..];
        }
        while let Some(end) = line_end(input) {
            let (piece, rest) = input.split_at(end);
            let feed = usize::from(rest.starts_with(b"\r\n"));
            self.after_cr = rest == b"\r";
            *input = &rest[1 + feed..];
            let event = if self.line.is_empty() {
                self.check_line(piece)?;
                self.end_line(piece)?
            } else {
                self.keep(piece)?;
                let mut line = mem::take(&mut self.line);
                let event = self.end_line(&line)?;
                // The buffer is reused for the next chunked line, unless it is large.
                if line.capacity() <= 64 << 10 {
                    line.clear();
                    self.line = line;
                }
                event
            };
            if event.is_some() {
                return Ok(event);
            }
        }
        let piece = mem::take(input);
        self.keep(piece)?;
        Ok(None)
    }

    fn check_line(&self, more: &[u8]) -> Result<(), DecodeError> {
        match self.line.len() + more.len() > self.limits.line {
            true => Err(DecodeError::LineTooLong { limit: self.limits.line }),
            false => Ok(()),
        }
    }

    fn keep(&mut self, piece: &[u8]) -> Result<(), DecodeError> {
        self.check_line(piece)?;
        self.line.extend_from_slice(piece);
        Ok(())
    }

    fn end_line(&mut self, mut line: &[u8]) -> Result<Option<Event>, DecodeError> {
        if !self.started {
            self.started = true;
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            return Ok(self.dispatch());
        }
        let colon = line.iter().position(|&byte| byte == b':');
        let (field, value) = line.split_at(colon.unwrap_or(line.len()));
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                let value = text(value)?;
                if self.event.data.len() + value.len() > self.limits.event {
                    return Err(DecodeError::EventTooLong { limit: self.limits.event });
                }
                // The exact size: most events have one line.
                self.event.data.reserve_exact(if self.event.data.is_empty() { value.len() + 1 } else { 0 });
                self.event.data.push_str(value);
                self.event.data.push('\n');
                self.pending = true;
            }
            b"id" if !value.contains(&0) => {
                // A header cannot carry a longer id, and it is kept for the life of the stream: the stream is not
                // resumable then.
                let id = if value.len() > MAX_ID { "" } else { text(value)? };
                self.event.id = Some(id.to_owned());
                self.pending = true;
            }
            b"event" => {
                self.event.name = Some(text(value)?).filter(|name| !is_default(name)).map(str::to_owned)
            }
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                // A number that overflows is ignored.
                if let Ok(milliseconds) = text(value)?.parse() {
                    self.event.retry = Some(milliseconds);
                    self.pending = true;
                }
            }
            // A comment, or an unknown field.
            _ => {}
        }
        Ok(None)
    }

    fn dispatch(&mut self) -> Option<Event> {
        let mut event = mem::take(&mut self.event);
        if !mem::take(&mut self.pending) {
            return None;
        }
        event.data.pop();
        if let Some(id) = &event.id {
            self.last_event_id.clone_from(id);
        }
        Some(event)
    }
}

fn is_default(name: &str) -> bool {
    matches!(name, "" | "message")
}

fn text(bytes: &[u8]) -> Result<&str, DecodeError> {
    std::str::from_utf8(bytes).map_err(|_| DecodeError::NotUtf8)
}

/// Returns the end of the first line of `bytes`.
pub(super) fn line_end(bytes: &[u8]) -> Option<usize> {
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    // By blocks: the compiler vectorizes a loop without an early exit.
    let blocks =
        bytes.chunks_exact(16).take_while(|block| !block.iter().fold(false, |any, byte| any | is_end(byte)));
    let skipped = 16 * blocks.count();
    bytes[skipped..].iter().position(is_end).map(|end| skipped + end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sse::Frame;

    fn feed(decoder: &mut Decoder, pieces: &[&[u8]]) -> Result<Vec<Event>, DecodeError> {
        let mut events = Vec::new();
        for mut piece in pieces.iter().copied() {
            while let Some(event) = decoder.next(&mut piece)? {
                events.push(event);
            }
        }
        Ok(events)
    }

    /// The events of a stream, the same whole and byte by byte.
    fn events(stream: &[u8]) -> Vec<Event> {
        let whole = feed(&mut Decoder::default(), &[stream]).unwrap();
        let bytes: Vec<_> = stream.chunks(1).collect();
        assert_eq!(feed(&mut Decoder::default(), &bytes).unwrap(), whole);
        whole
    }

    fn data(text: &str) -> Event {
        Event { data: text.into(), ..Event::default() }
    }

    #[test]
    fn an_id_that_no_header_carries_is_none() {
        let mut decoder = Decoder::default();
        let kept = "i".repeat(MAX_ID);
        feed(&mut decoder, &[format!("id: {kept}\ndata: a\n\n").as_bytes()]).unwrap();
        assert_eq!(decoder.last_event_id(), kept);
        // Not the one before either: coming back with that would bring everything since once more.
        feed(&mut decoder, &[format!("id: {kept}i\ndata: b\n\n").as_bytes()]).unwrap();
        assert_eq!(decoder.last_event_id(), "");
    }

    #[test]
    fn streams() {
        let id = |id: &str| Some(id.to_owned());
        for (stream, expected) in [
            ("", vec![]),
            ("data: a\n\n", vec![data("a")]),
            ("data: a\r\n\r\n", vec![data("a")]),
            ("data: a\r\r", vec![data("a")]),
            ("data: a\r\n\r", vec![data("a")]),
            ("data: a\n\ndata: b\r\rdata: c\r\n\r\n", vec![data("a"), data("b"), data("c")]),
            ("\u{feff}data: a\n\n", vec![data("a")]),
            ("data: a\n\n\u{feff}data: b\n\n", vec![data("a")]),
            ("data:a\n\n", vec![data("a")]),
            ("data:  a \n\n", vec![data(" a ")]),
            ("data: a\ndata: b\n\n", vec![data("a\nb")]),
            ("data\ndata\n\n", vec![data("\n")]),
            ("data\n\n", vec![data("")]),
            ("data: a:b\n\n", vec![data("a:b")]),
            (": comment\n\n:\n\n\n\n", vec![]),
            ("data: a\n: in between\ndata: b\n\n", vec![data("a\nb")]),
            ("foo: bar\nDATA: x\n data: x\n\n", vec![]),
            ("event: endpoint\ndata: /m\n\n", vec![Event { name: Some("endpoint".into()), ..data("/m") }]),
            ("event: message\ndata: m\n\n", vec![data("m")]),
            ("event: x\nevent:\ndata: m\n\n", vec![data("m")]),
            ("event: dropped\n\ndata: m\n\n", vec![data("m")]),
            ("id: 7\ndata:\n\n", vec![Event { id: id("7"), ..data("") }]),
            ("id: 7\n\n", vec![Event { id: id("7"), ..data("") }]),
            ("id: a\nid: b\n\n", vec![Event { id: id("b"), ..data("") }]),
            ("id: a\0b\ndata: x\n\n", vec![data("x")]),
            ("id\ndata: x\n\n", vec![Event { id: id(""), ..data("x") }]),
            (
                "id: event-1\nretry: 500\ndata: \n\n",
                vec![Event { id: id("event-1"), retry: Some(500), ..data("") }],
            ),
            ("retry: 2000\n\n", vec![Event { retry: Some(2000), ..data("") }]),
            ("retry: -1\nretry: 1.5\nretry: 0x1\nretry:\nretry: 99999999999999999999\n\n", vec![]),
            ("retry: +1\n\n", vec![]),
            ("data: a\n\ndata: cut off", vec![data("a")]),
            ("data: a\n\ndata: cut off\n", vec![data("a")]),
            ("data: 世界\n\n", vec![data("世界")]),
        ] {
            assert_eq!(events(stream.as_bytes()), expected, "{stream:?}");
        }
    }

    #[test]
    fn an_event_is_seen_as_soon_as_its_line_ends() {
        let mut decoder = Decoder::default();
        assert_eq!(feed(&mut decoder, &[b"data: a\r", b"\n\r"]).unwrap(), [data("a")]);
        assert_eq!(feed(&mut decoder, &[b"\n", b"data: b\n", b"\n"]).unwrap(), [data("b")]);
    }

    #[test]
    fn the_last_id_lasts() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.last_event_id(), "");
        feed(&mut decoder, &[b"id: 1\ndata: a\n\ndata: b\n\nid: 2\ndata: never ends\n"]).unwrap();
        assert_eq!(decoder.last_event_id(), "1");
        decoder.reconnect();
        assert_eq!(feed(&mut decoder, &[b"data: c\n\n"]).unwrap(), [data("c")]);
        assert_eq!(decoder.last_event_id(), "1");
        feed(&mut decoder, &[b"id:\n\n"]).unwrap();
        assert_eq!(decoder.last_event_id(), "");
    }

    #[test]
    fn limits_hold_however_the_stream_is_cut() {
        let limits = DecoderLimits { line: 10, event: 12 };
        for (stream, expected) in [
            ("data: abcd\n\n", Ok(())),
            ("data: abcde\n\n", Err(DecodeError::LineTooLong { limit: 10 })),
            (": a very long comment", Err(DecodeError::LineTooLong { limit: 10 })),
            ("data: abcd\ndata: abcd\ndata: ab\n\n", Ok(())),
            ("data: abcd\ndata: abcd\ndata: abc\n\n", Err(DecodeError::EventTooLong { limit: 12 })),
            ("data\ndata\ndata\ndata\ndata\ndata\ndata\ndata\ndata\ndata\ndata\ndata\ndata\n", Ok(())),
        ] {
            for size in 1..=stream.len() {
                let mut decoder = Decoder::new(limits);
                let pieces: Vec<_> = stream.as_bytes().chunks(size).collect();
                assert_eq!(feed(&mut decoder, &pieces).map(drop), expected, "{stream:?} by {size}");
                if let Err(fault) = expected {
                    assert_eq!(feed(&mut decoder, &[b"\n\ndata: x\n\n"]), Err(fault));
                }
            }
        }
    }

    #[test]
    fn what_is_not_utf_8_ends_the_stream() {
        for stream in [&b"data: \xff\n"[..], b"id: \xff\n", b"event: \xe4\xb8\n"] {
            assert_eq!(feed(&mut Decoder::default(), &[stream]), Err(DecodeError::NotUtf8));
        }
        assert_eq!(feed(&mut Decoder::default(), &[b": \xff\n\xff: \xff\ndata: a\n\n"]), Ok(vec![data("a")]));
        // Cut inside a character.
        assert_eq!(
            feed(&mut Decoder::default(), &[b"data: \xe4", b"\xb8", b"\x96\n\n"]),
            Ok(vec![data("世")])
        );
    }

    #[test]
    fn a_line_ends_where_it_ends() {
        for length in 0..100 {
            let mut bytes = vec![b'x'; length];
            assert_eq!(line_end(&bytes), None);
            for at in 0..length {
                for end in [b'\n', b'\r'] {
                    bytes[at] = end;
                    assert_eq!(line_end(&bytes), Some(at));
                    bytes[at] = b'x';
                }
            }
        }
    }

    fn any_event() -> impl Strategy<Value = Event> {
        let text = "[^\r\n\0]{0,12}";
        let name = proptest::option::of(text.prop_filter("not the default", |name| !is_default(name)));
        (name, proptest::option::of(text), proptest::option::of(any::<u64>()), "([^\r]|\n){0,40}")
            .prop_map(|(name, id, retry, data)| Event { name, id, retry, data })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(events in proptest::collection::vec(any_event(), 0..6), cuts in any::<u64>()) {
            let mut stream = Vec::new();
            for event in &events {
                let mut frame = Frame::data(&event.data);
                frame = event.name.as_deref().map_or(frame, |name| frame.event(name));
                frame = event.id.as_deref().map_or(frame, |id| frame.id(id));
                frame = event.retry.map_or(frame, |retry| frame.with_retry(retry));
                frame.write(&mut stream).unwrap();
                stream.extend_from_slice(crate::sse::KEEP_ALIVE);
            }
            let bytes: Vec<_> = stream.chunks(1).collect();
            // Sizes that differ from piece to piece, from the same few bits each time.
            let (mut pieces, mut rest) = (Vec::new(), stream.as_slice());
            while !rest.is_empty() {
                let size = 1 + (cuts.rotate_left(pieces.len() as u32 * 5) % 23) as usize;
                let (piece, more) = rest.split_at(size.min(rest.len()));
                pieces.push(piece);
                rest = more;
            }
            for pieces in [&[&stream[..]][..], &bytes, &pieces] {
                prop_assert_eq!(&feed(&mut Decoder::default(), pieces).unwrap(), &events);
            }
        }

        #[test]
        fn any_bytes_are_read_alike_however_they_are_cut(
            bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b':'), any::<u8>()], 0..200),
            cut in any::<prop::sample::Index>(),
        ) {
            let at = cut.index(bytes.len() + 1);
            let whole = feed(&mut Decoder::default(), &[&bytes]);
            prop_assert_eq!(feed(&mut Decoder::default(), &[&bytes[..at], &bytes[at..]]), whole.clone());
            prop_assert_eq!(feed(&mut Decoder::default(), &bytes.chunks(1).collect::<Vec<_>>()), whole);
        }
    }
}
