//! Signals that are passed on to the program.

use std::{future::poll_fn, io, task::Poll};

use rustix::process::{Pid, Signal, kill_process};
use tokio::signal::unix::{Signal as SignalStream, SignalKind, signal};

/// The signals that a host or a terminal sends to a program.
pub(super) struct ForwardedSignals(Vec<(Signal, SignalStream)>);

/// A signal that has arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct ForwardedSignal(Signal);

impl ForwardedSignals {
    /// Receives them from now on.
    pub(super) fn listen() -> io::Result<Self> {
        let kinds = [
            (Signal::HUP, SignalKind::hangup()),
            (Signal::INT, SignalKind::interrupt()),
            (Signal::QUIT, SignalKind::quit()),
            (Signal::TERM, SignalKind::terminate()),
            (Signal::USR1, SignalKind::user_defined1()),
            (Signal::USR2, SignalKind::user_defined2()),
        ];
        kinds
            .into_iter()
            .map(|(number, kind)| Ok((number, signal(kind)?)))
            .collect::<io::Result<_>>()
            .map(Self)
    }

    /// Waits for the next one.
    pub(super) async fn next(&mut self) -> ForwardedSignal {
        poll_fn(|cx| {
            let arrived = self.0.iter_mut().find_map(|(number, stream)| match stream.poll_recv(cx) {
                Poll::Ready(_) => Some(ForwardedSignal(*number)),
                Poll::Pending => None,
            });
            arrived.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

impl ForwardedSignal {
    /// Sends it to a process.
    pub(super) fn send_to(self, id: u32) {
        if let Some(process) = i32::try_from(id).ok().and_then(Pid::from_raw) {
            // It may have ended.
            let _ = kill_process(process, self.0);
        }
    }

    /// Returns whether a program that goes on after it is to be killed.
    pub(super) fn ends(self) -> bool {
        matches!(self.0, Signal::HUP | Signal::QUIT | Signal::TERM)
    }
}
