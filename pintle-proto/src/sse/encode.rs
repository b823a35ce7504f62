use std::fmt;

use super::decode::line_end;

/// An empty comment, which keeps proxies from closing an idle stream.
pub const KEEP_ALIVE: &[u8] = b":\n\n";

/// An event to be written.
///
/// ```
/// use pintle_proto::sse::Frame;
///
/// let mut out = Vec::new();
/// Frame::priming("s2-0").write(&mut out)?;
/// Frame::data(r#"{"jsonrpc":"2.0","id":2,"result":{}}"#).id("s2-1").write(&mut out)?;
/// let expected: &[u8] = b"id: s2-0\ndata:\n\nid: s2-1\ndata: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n\n";
/// assert_eq!(out, expected);
/// # Ok::<(), pintle_proto::sse::BadFrame>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Frame<'a> {
    event: Option<&'a str>,
    id: Option<&'a str>,
    retry: Option<u64>,
    data: Option<&'a str>,
}

impl<'a> Frame<'a> {
    /// Creates an event with data. JSON without line breaks takes one line; other text may take several, and each of
    /// its line breaks is read as a line feed.
    pub const fn data(data: &'a str) -> Self {
        Self { event: None, id: None, retry: None, data: Some(data) }
    }

    /// Creates the event that starts a stream. It has no data, but a client that received its id can resume the stream.
    pub const fn priming(id: &'a str) -> Self {
        Self { event: None, id: Some(id), retry: None, data: Some("") }
    }

    /// Creates an event with only a reconnection delay, in milliseconds.
    pub const fn retry(milliseconds: u64) -> Self {
        Self { event: None, id: None, retry: Some(milliseconds), data: None }
    }

    /// Sets the id, for `Last-Event-ID`.
    #[must_use]
    pub const fn id(mut self, id: &'a str) -> Self {
        self.id = Some(id);
        self
    }

    /// Sets an event type other than `message`.
    #[must_use]
    pub const fn event(mut self, name: &'a str) -> Self {
        self.event = Some(name);
        self
    }

    /// Sets the reconnection delay, in milliseconds.
    #[must_use]
    pub const fn with_retry(mut self, milliseconds: u64) -> Self {
        self.retry = Some(milliseconds);
        self
    }

    /// Appends the event to `out`. On error nothing is written.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), BadFrame> {
        let broken = |text: &str| text.bytes().any(|byte| matches!(byte, b'\n' | b'\r' | 0));
        if self.event.is_some_and(broken) {
            return Err(BadFrame::Event);
        }
        if self.id.is_some_and(broken) {
            return Err(BadFrame::Id);
        }
        let length = |text: Option<&str>| text.map_or(0, |text| text.len() + "event: \n".len());
        out.reserve(
            length(self.event)
                + length(self.id)
                + length(self.data)
                + "retry: 18446744073709551615\n\n".len(),
        );
        if let Some(event) = self.event {
            line(out, "event", event);
        }
        if let Some(id) = self.id {
            line(out, "id", id);
        }
        if let Some(milliseconds) = self.retry {
            line(out, "retry", &milliseconds.to_string());
        }
        match self.data {
            Some(data) if line_end(data.as_bytes()).is_some() => {
                lines(data).for_each(|text| line(out, "data", text));
            }
            Some(data) => line(out, "data", data),
            None => {}
        }
        out.push(b'\n');
        Ok(())
    }
}

/// The error for a line break or a NUL where the format does not allow it.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BadFrame {
    /// In the event type.
    Event,
    /// In the id.
    Id,
}

impl fmt::Display for BadFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Event => "the name of an event must not have line breaks or NUL",
            Self::Id => "the id of an event must not have line breaks or NUL",
        })
    }
}

impl std::error::Error for BadFrame {}

fn line(out: &mut Vec<u8>, field: &str, value: &str) {
    out.extend_from_slice(field.as_bytes());
    out.push(b':');
    if !value.is_empty() {
        out.push(b' ');
        out.extend_from_slice(value.as_bytes());
    }
    out.push(b'\n');
}

/// Returns the lines of a text, separated by CR, LF or CRLF.
fn lines(mut text: &str) -> impl Iterator<Item = &str> {
    let mut done = false;
    std::iter::from_fn(move || {
        if done {
            return None;
        }
        let Some(end) = text.find(['\r', '\n']) else {
            done = true;
            return Some(text);
        };
        let (line, rest) = text.split_at(end);
        text = rest.strip_prefix("\r\n").unwrap_or(&rest[1..]);
        Some(line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(frame: Frame<'_>) -> String {
        let mut out = Vec::new();
        frame.write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn events_on_the_wire() {
        for (frame, expected) in [
            (Frame::data("{}"), "data: {}\n\n"),
            (Frame::data(""), "data:\n\n"),
            (Frame::data(" x"), "data:  x\n\n"),
            (Frame::data("a\nb"), "data: a\ndata: b\n\n"),
            (Frame::data("a\r\nb\rc\n"), "data: a\ndata: b\ndata: c\ndata:\n\n"),
            (Frame::data("\n\r"), "data:\ndata:\ndata:\n\n"),
            (Frame::data("/messages?s=1").event("endpoint"), "event: endpoint\ndata: /messages?s=1\n\n"),
            (Frame::priming("s2-0"), "id: s2-0\ndata:\n\n"),
            (Frame::priming("s2-0").with_retry(500), "id: s2-0\nretry: 500\ndata:\n\n"),
            (Frame::retry(2000), "retry: 2000\n\n"),
            (Frame::data("x").id(""), "id:\ndata: x\n\n"),
        ] {
            assert_eq!(written(frame), expected);
        }
    }

    #[test]
    fn nothing_can_be_smuggled_in() {
        let mut out = b"before".to_vec();
        for text in ["a\ndata: evil", "a\rb", "a\0b"] {
            assert_eq!(Frame::data("x").id(text).write(&mut out), Err(BadFrame::Id));
            assert_eq!(Frame::data("x").event(text).write(&mut out), Err(BadFrame::Event));
        }
        assert_eq!(out, b"before");
    }
}
