//! Lines on the pipes of a child: as many requests are on their way as may be, and for each answer another one is sent.

use std::{
    collections::VecDeque,
    io::{Read as _, Write as _},
    process::{ChildStdin, ChildStdout},
    time::Instant,
};

use bench::wire::{self, Ask, Asking, Era};

use crate::{
    program::Running,
    tally::{Bounds, Tally},
};

/// Both pipes of a server.
#[derive(Debug)]
pub(crate) struct Pipes {
    to: ChildStdin,
    from: ChildStdout,
    asking: Asking,
    buffer: Vec<u8>,
    filled: usize,
    /// So far there is no line's end.
    scanned: usize,
}

impl Pipes {
    /// Takes a server's pipes, and does the handshake if the era has one.
    pub(crate) fn open(server: &mut Running, ask: Ask, era: Era) -> Result<Self, String> {
        let mut this = Self {
            to: server.child.stdin.take().ok_or("it has no input")?,
            from: server.child.stdout.take().ok_or("it has no output")?,
            asking: Asking::line(ask, era),
            buffer: vec![0; 64 << 10],
            filled: 0,
            scanned: 0,
        };
        if era == Era::Session {
            let [open, done] = wire::handshake();
            this.write(format!("{open}\n").as_bytes())?;
            while this.take(false)? == 0 {
                this.read()?;
            }
            this.write(format!("{done}\n").as_bytes())?;
        }
        Ok(this)
    }

    /// Asks until as much is asked as may be. What is asked at once has to fit into a pipe, unless it is one.
    ///
    /// How long an answer took is told as if they came in the order of the requests.
    pub(crate) fn run(&mut self, in_flight: usize, bounds: Bounds) -> Result<Tally, String> {
        let mut tally = Tally::begin(bounds);
        let (mut lines, mut asked) = (Vec::new(), VecDeque::with_capacity(in_flight));
        loop {
            lines.clear();
            while asked.len() < in_flight && tally.may_ask() {
                lines.extend_from_slice(self.asking.another());
                asked.push_back(Instant::now());
            }
            self.write(&lines)?;
            if asked.is_empty() {
                return Ok(tally);
            }
            self.read()?;
            for _ in 0..self.take(tally.requests().is_multiple_of(4096))? {
                tally.answered(asked.pop_front().ok_or("more answers than requests came")?);
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.to.write_all(bytes).map_err(|error| format!("its input: {error}"))
    }

    fn read(&mut self) -> Result<(), String> {
        if self.filled == self.buffer.len() {
            self.buffer.resize(2 * self.filled, 0);
        }
        match self.from.read(self.buffer.get_mut(self.filled..).unwrap_or_default()) {
            Ok(0) => Err("it has closed its output".to_owned()),
            Ok(came) => {
                self.filled += came;
                Ok(())
            }
            Err(error) => Err(format!("its output: {error}")),
        }
    }

    /// Takes out the whole lines; looks at the first one if it is to be looked at.
    fn take(&mut self, closely: bool) -> Result<usize, String> {
        let came = self.buffer.get(..self.filled).unwrap_or_default();
        let new = came.get(self.scanned..).unwrap_or_default();
        let Some(end) = new.iter().rposition(|byte| *byte == b'\n') else {
            self.scanned = self.filled;
            return Ok(0);
        };
        let end = self.scanned + end;
        let whole = came.get(..end).unwrap_or_default();
        let first = whole.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let fault = closely.then(|| self.asking.fault(first)).flatten();
        let lines = whole.iter().filter(|byte| **byte == b'\n').count() + 1;
        self.buffer.copy_within(end + 1..self.filled, 0);
        self.filled -= end + 1;
        self.scanned = self.filled;
        fault.map_or(Ok(lines), Err)
    }
}
