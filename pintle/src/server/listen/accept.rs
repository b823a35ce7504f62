//! The accept loop of a socket with one message per line.

use std::{
    collections::HashMap,
    future::{Future, poll_fn},
    io,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    task::{self, JoinError, JoinSet},
    time::{Sleep, sleep},
};

use crate::{
    Ended, Result,
    server::{Server, ServingHandle, serving::Stop},
    transport::{Listener, Stream, open_files},
};

/// The limit on concurrent connections. Further ones wait to be accepted.
const MAX_CONNECTIONS: usize = 16_384;

/// The delay after a failed accept: with all file descriptors in use, an immediate retry would fail again.
const RETRY_DELAY: Duration = Duration::from_millis(200);

/// The connections of a listener, each with the handle that closes it.
#[derive(Default)]
struct Connections {
    tasks: JoinSet<()>,
    handles: HashMap<task::Id, ServingHandle>,
}

/// Serves the connections of a listener until `stop` is requested, then closes them.
pub(super) async fn serve(server: Server, mut listener: Listener, stop: Arc<Stop>) -> Result<Ended> {
    let mut connections = Connections::default();
    let mut delay: Option<Pin<Box<Sleep>>> = None;
    let grace = loop {
        let mut accept = pin!(listener.accept());
        // Ended connections make room, so they come first; a stop request comes before the next connection.
        let next = poll_fn(|cx| {
            let _ = connections.poll_ended(cx);
            if let Some(grace) = stop.asked(cx) {
                return Poll::Ready(Err(grace));
            }
            if let Some(timer) = &mut delay {
                std::task::ready!(timer.as_mut().poll(cx));
                delay = None;
            }
            match connections.handles.len() < MAX_CONNECTIONS {
                true => accept.as_mut().poll(cx).map(Ok),
                false => Poll::Pending,
            }
        });
        match next.await {
            Ok(Ok(stream)) => connections.serve(&server, stream),
            Ok(Err(error)) if is_connection_error(&error) => {}
            Ok(Err(error)) => {
                let error = open_files::explained(error);
                tracing::warn!("failed to accept a connection, retrying: {error}");
                delay = Some(Box::pin(sleep(RETRY_DELAY)));
            }
            Err(grace) => break grace,
        }
    };
    drop(listener);
    connections.close(grace);
    poll_fn(|cx| {
        // A further request may shorten the time.
        if let Some(grace) = stop.asked(cx) {
            connections.close(grace);
        }
        connections.poll_ended(cx)
    })
    .await;
    Ok(Ended::Stopped)
}

impl Connections {
    fn serve(&mut self, server: &Server, stream: Stream) {
        match server.serve(stream) {
            Ok(serving) => {
                let handle = serving.handle();
                // How it ended is logged by the connection.
                let task = self.tasks.spawn(async move { drop(serving.wait().await) });
                self.handles.insert(task.id(), handle);
            }
            // The catalogue became invalid at run time.
            Err(error) => tracing::error!("a connection is refused: {error}"),
        }
    }

    /// Removes ended connections. Ready when there are none left.
    fn poll_ended(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while let Some(ended) = std::task::ready!(self.tasks.poll_join_next_with_id(cx)) {
            let id = ended.map_or_else(|error: JoinError| error.id(), |(id, ())| id);
            self.handles.remove(&id);
        }
        Poll::Ready(())
    }

    fn close(&self, grace: Duration) {
        self.handles.values().for_each(|connection| connection.close(grace));
    }
}

/// Returns whether an error concerns only the connection that was being accepted.
fn is_connection_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, InvalidInput, NotConnected};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | InvalidInput | NotConnected
    )
}
