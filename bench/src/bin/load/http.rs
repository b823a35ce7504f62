//! HTTP/1.1 on kept connections, each of which asks again when it is answered.
//!
//! One thread looks after all of them, in turn, with calls that block: while it waits for one, the others wait for the
//! server, so as many requests are on their way as there are connections. Nothing costs the generator less.

use std::{
    borrow::Cow,
    io::{Read as _, Write as _},
    net::TcpStream,
    time::{Duration, Instant},
};

use bench::wire::{self, Ask, Asking, Era};

use crate::{
    SILENCE,
    tally::{Bounds, Tally},
};

/// A connection, and what is asked on it.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) wire: Wire,
    pub(crate) asking: Asking,
    since: Instant,
    waits: bool,
}

impl Lane {
    /// Connects, and opens a session if the era has them.
    pub(crate) fn open(address: &str, ask: Ask, era: Era) -> Result<Self, String> {
        let mut wire = Wire::connect(address)?;
        let session = match era {
            Era::Session => Some(wire.open_session()?),
            Era::Stateless => None,
        };
        Ok(Self::with(wire, Asking::post(ask, era, address, session.as_deref())))
    }

    pub(crate) fn with(wire: Wire, asking: Asking) -> Self {
        Self { wire, asking, since: Instant::now(), waits: false }
    }

    fn send(&mut self) -> Result<(), String> {
        self.since = Instant::now();
        self.waits = true;
        self.wire.send(self.asking.another())
    }

    /// Takes the answer, and looks at it.
    fn receive(&mut self, closely: bool) -> Result<(), String> {
        self.waits = false;
        let head = self.wire.receive()?;
        let body = self.wire.body(&head);
        if head.status != 200 {
            return Err(format!("{}: {}", head.status, shown(&body)));
        }
        match closely.then(|| self.asking.fault(&body)).flatten() {
            Some(fault) => Err(fault),
            None => Ok(()),
        }
    }
}

/// Has all connections ask until as much is asked as may be.
pub(crate) fn run(lanes: &mut [Lane], bounds: Bounds) -> Result<Tally, String> {
    run_with(lanes, bounds, |_| ())
}

/// Sends requests like the above; `next` may change a request before it is sent.
pub(crate) fn run_with(
    lanes: &mut [Lane],
    bounds: Bounds,
    mut next: impl FnMut(&mut Asking),
) -> Result<Tally, String> {
    let mut tally = Tally::begin(bounds);
    for lane in lanes.iter_mut() {
        if tally.may_ask() {
            next(&mut lane.asking);
            lane.send()?;
        }
    }
    while lanes.iter().any(|lane| lane.waits) {
        for lane in lanes.iter_mut().filter(|lane| lane.waits) {
            lane.receive(tally.requests().is_multiple_of(256))?;
            tally.answered(lane.since);
            if tally.may_ask() {
                next(&mut lane.asking);
                lane.send()?;
            }
        }
    }
    Ok(tally)
}

/// A connection, and what came on it last.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) address: String,
    stream: TcpStream,
    buffer: Vec<u8>,
    filled: usize,
}

impl Wire {
    pub(crate) fn connect(address: &str) -> Result<Self, String> {
        let error = |error: std::io::Error| format!("`{address}`: {error}");
        let stream = TcpStream::connect(address).map_err(error)?;
        stream.set_nodelay(true).map_err(error)?;
        stream.set_write_timeout(Some(SILENCE)).map_err(error)?;
        let this = Self { address: address.to_owned(), stream, buffer: vec![0; 16 << 10], filled: 0 };
        this.set_timeout(SILENCE)?;
        Ok(this)
    }

    /// How long to wait for more to come.
    pub(crate) fn set_timeout(&self, time: Duration) -> Result<(), String> {
        self.stream.set_read_timeout(Some(time)).map_err(|error| error.to_string())
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.stream.write_all(bytes).map_err(|error| format!("sending: {error}"))
    }

    /// Sends a message with these headers, and takes the answer.
    pub(crate) fn post(&mut self, message: &str, headers: &[(&'static str, String)]) -> Result<Head, String> {
        let head = wire::head(&self.address, message.len(), headers);
        self.send(&[head.as_bytes(), message.as_bytes()].concat())?;
        self.receive()
    }

    /// Does the handshake; the id of the session.
    pub(crate) fn open_session(&mut self) -> Result<String, String> {
        let [open, done] = wire::handshake();
        let head = self.post(&open, &[])?;
        let Some(session) = head.session else {
            return Err(format!("it gave no session, but {}: {}", head.status, shown(&self.body(&head))));
        };
        let head = self.post(&done, &wire::headers(Ask::Echo, Era::Session, Some(&session)))?;
        match head.status {
            200..300 => Ok(session),
            status => Err(format!("the handshake was answered with {status}")),
        }
    }

    /// Reads one answer.
    pub(crate) fn receive(&mut self) -> Result<Head, String> {
        let head = self.receive_head()?;
        while !head.is_whole(self.came()) {
            self.more()?;
        }
        Ok(head)
    }

    /// Reads an answer up to where its body begins, or somewhat further.
    pub(crate) fn receive_head(&mut self) -> Result<Head, String> {
        self.filled = 0;
        loop {
            self.more()?;
            if let Some(head) = Head::parse(self.came()) {
                return Ok(head);
            }
        }
    }

    /// Reads what comes next behind what has come.
    pub(crate) fn more(&mut self) -> Result<(), String> {
        if self.filled == self.buffer.len() {
            self.buffer.resize(2 * self.filled, 0);
        }
        let room = self.buffer.get_mut(self.filled..).unwrap_or_default();
        match self.stream.read(room) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => Ok(()),
            Ok(0) => Err("it hung up".to_owned()),
            Ok(came) => {
                self.filled += came;
                Ok(())
            }
            Err(error) => Err(format!("nothing came: {error}")),
        }
    }

    /// The head of what has come.
    pub(crate) fn read_again(&self) -> Option<Head> {
        Head::parse(self.came())
    }

    /// Discards the received bytes; a stream may continue.
    pub(crate) fn forget(&mut self) {
        self.filled = 0;
    }

    /// Returns the received bytes of the response.
    pub(crate) fn came(&self) -> &[u8] {
        self.buffer.get(..self.filled).unwrap_or_default()
    }

    /// Returns the received bytes of the body.
    pub(crate) fn body(&self, head: &Head) -> Cow<'_, [u8]> {
        let body = self.came().get(head.length..).unwrap_or_default();
        if head.chunked { joined(body).into() } else { body.into() }
    }
}

pub(crate) fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.get(..300).unwrap_or(bytes)).into_owned()
}

/// The head of an answer.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Head {
    length: usize,
    pub(crate) status: u16,
    session: Option<String>,
    body: Option<usize>,
    chunked: bool,
}

impl Head {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let length = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
        let text = std::str::from_utf8(bytes.get(..length)?).ok()?;
        let mut lines = text.split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let mut head = Self { length, status, ..Self::default() };
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") {
                head.body = value.parse().ok();
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                head.chunked = value.eq_ignore_ascii_case("chunked");
            } else if name.eq_ignore_ascii_case("mcp-session-id") {
                head.session = Some(value.to_owned());
            }
        }
        Some(head)
    }

    /// No line of JSON is a lone zero, so the last chunk cannot be taken for anything else.
    pub(crate) fn is_whole(&self, bytes: &[u8]) -> bool {
        if self.chunked {
            bytes.ends_with(b"\r\n0\r\n\r\n")
        } else {
            bytes.len() >= self.length + self.body.unwrap_or(0)
        }
    }
}

/// Chunks without their sizes, as far as they have come.
fn joined(mut chunks: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(end) = chunks.windows(2).position(|two| two == b"\r\n") {
        let (line, rest) = chunks.split_at(end);
        let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
        let size =
            std::str::from_utf8(digits).ok().and_then(|text| usize::from_str_radix(text.trim(), 16).ok());
        let rest = rest.get(2..).unwrap_or_default();
        let Some(size) = size.filter(|size| *size > 0) else { break };
        whole.extend_from_slice(rest.get(..size).unwrap_or(rest));
        chunks = rest.get(size + 2..).unwrap_or_default();
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_says_when_its_body_is_whole() {
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nMcp-Session-Id: ab\r\n\r\n{}";
        let head = Head::parse(answer).unwrap();
        assert_eq!((head.status, head.session.as_deref()), (200, Some("ab")));
        assert!(head.is_whole(answer));
        assert!(!head.is_whole(&answer[..answer.len() - 1]));
        assert_eq!(Head::parse(&answer[..20]), None);
    }

    #[test]
    fn chunks_are_joined_and_their_end_is_seen() {
        let answer =
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\ndata:\r\n3;x=y\r\n {}\r\n0\r\n\r\n";
        let head = Head::parse(answer).unwrap();
        assert!(head.is_whole(answer));
        assert!(!head.is_whole(&answer[..answer.len() - 5]));
        assert_eq!(joined(&answer[head.length..]), b"data: {}");
        assert_eq!(joined(b"5\r\nda"), b"da");
    }
}
