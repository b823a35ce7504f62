//! Lines on the pipes of a child: as many requests are on their way as may be, and for each answer another one is sent.

use std::time::Instant;

use bench::wire::{self, Asking, Era};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{ChildStdin, ChildStdout},
};

use crate::{Bounds, Cost, MEASURED, WARM, Workload, server::Program};

pub(crate) async fn measure(program: &Program, workload: Workload, pinned: bool) -> Result<Cost, String> {
    let mut server = program.start("stdio", pinned)?;
    let mut pipes = Pipes {
        to: server.child.stdin.take().ok_or("it has no input")?,
        from: server.child.stdout.take().ok_or("it has no output")?,
        asking: Asking::line(workload.ask, workload.era),
        came: Vec::new(),
    };
    if workload.era == Era::Session {
        let [open, done] = wire::handshake();
        pipes.write(&[open, "\n".to_owned()].concat().into_bytes()).await?;
        pipes.read().await?;
        while !pipes.came.ends_with(b"\n") {
            pipes.read().await?;
        }
        pipes.came.clear();
        pipes.write(&[done, "\n".to_owned()].concat().into_bytes()).await?;
    }
    pipes.run(workload.in_flight, WARM).await?;
    let cpu = server.cpu()?;
    let requests = pipes.run(workload.in_flight, MEASURED).await?;
    Ok(Cost { requests, cpu: server.cpu()?.saturating_sub(cpu) })
}

struct Pipes {
    to: ChildStdin,
    from: ChildStdout,
    asking: Asking,
    came: Vec<u8>,
}

impl Pipes {
    async fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.to.write_all(bytes).await.map_err(|error| format!("its input: {error}"))
    }

    async fn read(&mut self) -> Result<(), String> {
        self.came.reserve(64 << 10);
        match self.from.read_buf(&mut self.came).await {
            Ok(0) => Err("it has closed its output".to_owned()),
            Ok(_) => Ok(()),
            Err(error) => Err(format!("its output: {error}")),
        }
    }

    /// Asks until as much is asked as may be. How many were answered: what is asked at once fits into a pipe.
    async fn run(&mut self, in_flight: usize, bounds: Bounds) -> Result<usize, String> {
        let until = Instant::now() + bounds.time;
        let (mut asked, mut answered) = (0, 0);
        let mut lines = Vec::new();
        loop {
            lines.clear();
            while asked - answered < in_flight && asked < bounds.requests && Instant::now() < until {
                lines.extend_from_slice(self.asking.another());
                asked += 1;
            }
            self.to.write_all(&lines).await.map_err(|error| format!("its input: {error}"))?;
            if asked == answered {
                return Ok(answered);
            }
            self.read().await?;
            answered += self.take(answered % 4096 == 0)?;
        }
    }

    /// Takes out the whole lines; looks at the first one if it is to be looked at.
    fn take(&mut self, closely: bool) -> Result<usize, String> {
        let Some(end) = self.came.iter().rposition(|byte| *byte == b'\n') else { return Ok(0) };
        let whole = self.came.get(..end).unwrap_or_default();
        let first = whole.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let fault = closely.then(|| self.asking.fault(first)).flatten();
        let lines = whole.iter().filter(|byte| **byte == b'\n').count() + 1;
        self.came.drain(..=end);
        fault.map_or(Ok(lines), Err)
    }
}
