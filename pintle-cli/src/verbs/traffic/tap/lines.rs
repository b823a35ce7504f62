use pintle::message_log::{ConnectionLog, Direction};

/// The largest message that is recorded. A larger one is passed on, and recorded as such.
const MAX_MESSAGE: usize = 16 << 20;

/// Finds the messages in one direction of a byte stream, and logs them.
pub(super) struct LoggedLines {
    log: ConnectionLog,
    direction: Direction,
    /// The start of a line whose end has not arrived.
    line: Vec<u8>,
    is_too_long: bool,
    limit: usize,
}

impl LoggedLines {
    pub(super) fn new(log: ConnectionLog, direction: Direction) -> Self {
        Self { log, direction, line: Vec::new(), is_too_long: false, limit: MAX_MESSAGE }
    }

    /// Logs the lines that end in these bytes, and keeps the rest.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let mut lines = bytes.split(|byte| *byte == b'\n');
        let rest = lines.next_back().unwrap_or_default();
        for line in lines {
            self.extend(line);
            self.end();
        }
        self.extend(rest);
    }

    /// Logs what has arrived of the last line.
    pub(super) fn end(&mut self) {
        let line = std::mem::take(&mut self.line);
        match std::mem::take(&mut self.is_too_long) {
            true => self.log.oversized(self.direction),
            false if line.trim_ascii().is_empty() => {}
            false => self.log.message(self.direction, line.trim_ascii()),
        }
    }

    fn extend(&mut self, bytes: &[u8]) {
        if self.is_too_long || self.line.len() + bytes.len() > self.limit {
            self.is_too_long = true;
            self.line = Vec::new();
        } else {
            self.line.extend_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use pintle::{
        message_log::{MessageLog, Side},
        transport::TransportKind,
    };

    use super::*;

    #[test]
    fn messages_are_lines_whatever_their_pieces_are() {
        let stream = b"{\"a\":1}\r\n\n{\"b\":2}\n{\"long\":\"xxxxxxxxxxxxxxxx\"}\n{\"c\":3}";
        for size in 1..stream.len() {
            let (sender, records) = mpsc::channel();
            let log = MessageLog::new(move |record| drop(sender.send(record.to_string())));
            let log = ConnectionLog::new(&log, Side::Client, TransportKind::Stdio, None);
            let mut lines = LoggedLines { limit: 16, ..LoggedLines::new(log, Direction::In) };
            stream.chunks(size).for_each(|piece| lines.push(piece));
            lines.end();
            assert!(lines.line.capacity() <= 32);
            drop(lines);
            let records: Vec<_> = records.try_iter().collect();
            let expected = ["1 ← {\"a\":1}", "2 ← {\"b\":2}", "3 ← (above the size limit)", "4 ← {\"c\":3}"];
            assert_eq!(records, expected, "{size}");
        }
    }
}
