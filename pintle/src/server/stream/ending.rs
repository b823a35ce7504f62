use std::{
    future::Future,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, sleep};

use super::{StreamConnection, keepalive::Silence};
use crate::{Ended, Result, server::clock::now};

impl StreamConnection {
    /// Ready when the peer does not answer pings.
    pub(super) fn poll_keepalive(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while let Some(keepalive) = &mut self.keepalive {
            match keepalive.poll(cx) {
                Poll::Pending => break,
                Poll::Ready(Silence::Dead) => return Poll::Ready(()),
                Poll::Ready(Silence::Ask) => {
                    if let Some(line) = self.engine.keepalive() {
                        keepalive.asked();
                        self.send(line.into());
                        cx.waker().wake_by_ref();
                    }
                }
            }
        }
        Poll::Pending
    }

    pub(super) fn poll_stop(&mut self, cx: &mut Context<'_>) {
        let Some(grace) = self.stop.asked(cx) else { return };
        match &mut self.closing {
            None => self.close_within(Ended::Stopped, grace),
            Some((_, sleep)) => {
                let sooner = Instant::now().checked_add(grace).filter(|end| *end < sleep.deadline());
                sooner.into_iter().for_each(|end| sleep.as_mut().reset(end));
            }
        }
        cx.waker().wake_by_ref();
    }

    pub(crate) fn close(&mut self, ended: Ended) {
        let grace = self.server.snapshot().settings.timeouts.disconnect;
        self.close_within(ended, grace);
    }

    /// Stops reading. Running calls may complete within `grace`, except for those that wait for an answer of the peer.
    fn close_within(&mut self, ended: Ended, grace: Duration) {
        let ids = self.questions.all();
        let stopped = ended == Ended::Stopped;
        self.closing = Some((ended, Box::pin(sleep(grace))));
        // A peer that has disconnected needs no cancellations.
        if stopped {
            self.take_back(&ids);
        }
        let snapshot = self.server.snapshot();
        for open in std::mem::take(&mut self.listens).into_values() {
            for line in self.engine.unlisten(&snapshot.service, &open.call, now()) {
                self.send(line.into());
            }
        }
    }

    pub(super) fn poll_closing(&mut self, cx: &mut Context<'_>) -> Poll<Result<Ended>> {
        let Some((ended, sleep)) = &mut self.closing else { return Poll::Pending };
        let idle = self.tasks.is_empty()
            && self.running.is_empty()
            && self.queue.is_empty()
            && self.notices.waiting.is_empty()
            && self.barrier.is_none()
            && self.unwritten == 0;
        if idle || sleep.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ok(ended.clone()));
        }
        Poll::Pending
    }
}
