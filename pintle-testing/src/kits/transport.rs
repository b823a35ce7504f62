//! Checks a transport that you wrote: whether what is sent arrives, whole, in order, whatever happens in between.
//!
//! ```
//! use pintle::transport::memory;
//! use pintle_testing::kits;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! if let Err(broken) = kits::transport::check(async || Ok(memory())).await {
//!     panic!("{broken:#?}");
//! }
//! # }
//! ```

use std::{
    future::{Future, poll_fn},
    io,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use pintle::transport::{Incoming, Transport};
use tokio::task::JoinSet;

use super::harness::{Broken, Check, Checked, wrong};

/// Checks every property on a fresh pair of connected transports.
///
/// # Errors
///
/// All properties that do not hold.
pub async fn check<L: Transport, R: Transport>(
    connect: impl AsyncFn() -> io::Result<(L, R)>,
) -> Result<(), Vec<Broken>> {
    let mut check = Check::new(async || {
        let (left, right) = connect().await?;
        Ok((Box::new(left) as BoxTransport, Box::new(right) as BoxTransport))
    });
    check.that("flushing nothing is done at once", idle).await;
    check.that("messages arrive in the order they were sent", order).await;
    check.that("messages of 1 byte to 4 MiB arrive unchanged", sizes).await;
    check.that("both ends may send 8 MiB before they read", full).await;
    check.that("receiving may be given up and taken up again", given_up).await;
    check.that("a new waker replaces the old one", new_waker).await;
    check.that("what was flushed arrives after its sender is dropped, then the end", end).await;
    check.that("sending to an end that is gone fails when flushed", gone).await;
    check.end()
}

type BoxTransport = Box<dyn Transport>;
type Ends = (BoxTransport, BoxTransport);

async fn idle((left, right): Ends) -> Checked {
    for mut end in [left, right] {
        match end.poll_flush(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(())) => {}
            other => return wrong(format!("it was {other:?}")),
        }
    }
    Ok(())
}

async fn order((left, right): Ends) -> Checked {
    let messages = |side: &str| (0..2_000).map(|n| Bytes::from(format!(r#"{{"{side}":{n}}}"#))).collect();
    both(exchange(left, messages("l"), messages("r")), exchange(right, messages("r"), messages("l"))).await
}

async fn sizes((left, right): Ends) -> Checked {
    let lengths = [1, 2, 3, 100, 4_095, 4_096, 4_097, 65_535, 65_536, 65_537, 1 << 20, 4 << 20, 1];
    let messages = || lengths.into_iter().map(text).collect();
    both(exchange(left, messages(), messages()), exchange(right, messages(), messages())).await
}

async fn full((left, right): Ends) -> Checked {
    let messages = || vec![text(64 << 10); 128];
    both(exchange(left, messages(), messages()), exchange(right, messages(), messages())).await
}

async fn given_up((left, right): Ends) -> Checked {
    let messages = || [1 << 20, 10, 200_000, 1].into_iter().map(text).collect::<Vec<_>>();
    let receive = async move {
        let mut end = right;
        for expected in messages() {
            // Each time it is ready to go on, it is first polled by someone who does not stay.
            let received = poll_fn(|cx| match end.poll_recv(&mut Context::from_waker(Waker::noop())) {
                Poll::Pending => end.poll_recv(cx),
                ready => ready,
            });
            expect(&received.await, &expected)?;
        }
        Ok(Some(end))
    };
    both(exchange(left, messages(), Vec::new()), receive).await
}

async fn new_waker((mut left, mut right): Ends) -> Checked {
    if let Poll::Ready(early) = right.poll_recv(&mut Context::from_waker(Waker::noop())) {
        return wrong(format!("something came though nothing was sent: {early:?}"));
    }
    let receive = async move {
        expect(&poll_fn(|cx| right.poll_recv(cx)).await, &text(5))?;
        Ok(Some(right))
    };
    let send = async move {
        // Let the other task wait first.
        tokio::task::yield_now().await;
        left.send(text(5));
        flushed(&mut left).await?;
        Ok(Some(left))
    };
    both(receive, send).await
}

async fn end((mut left, mut right): Ends) -> Checked {
    let messages: Vec<_> = [10; 100].into_iter().chain([300_000]).map(text).collect();
    let expected = messages.clone();
    let send = async move {
        messages.into_iter().for_each(|message| left.send(message));
        flushed(&mut left).await?;
        drop(left);
        Ok(None)
    };
    let receive = async move {
        for message in expected {
            expect(&poll_fn(|cx| right.poll_recv(cx)).await, &message)?;
        }
        match poll_fn(|cx| right.poll_recv(cx)).await {
            Ok(None) => Ok(Some(right)),
            other => wrong(format!("instead of the end came {}", shown(&other))),
        }
    };
    both(send, receive).await
}

async fn gone((mut left, right): Ends) -> Checked {
    drop(right);
    // It may be told as an end or as an error; until then a write may still find room.
    if let Ok(Some(incoming)) = poll_fn(|cx| left.poll_recv(cx)).await {
        return wrong(format!("something came though nothing was sent: {incoming:?}"));
    }
    loop {
        left.send(text(1_000));
        if poll_fn(|cx| left.poll_flush(cx)).await.is_err() {
            return Ok(());
        }
        // The news may be on its way.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Sends all of `out` at once, then writes and reads at the same time until `input` has come, as a connection does.
async fn exchange(mut end: BoxTransport, out: Vec<Bytes>, input: Vec<Bytes>) -> SideResult {
    out.into_iter().for_each(|message| end.send(message));
    let mut input = input.into_iter().peekable();
    let mut written = false;
    poll_fn(|cx| {
        if !written && let Poll::Ready(result) = end.poll_flush(cx) {
            result.map_err(|error| format!("flushing failed: {error}"))?;
            written = true;
        }
        while let Some(message) = input.peek() {
            let Poll::Ready(received) = end.poll_recv(cx) else { return Poll::Pending };
            expect(&received, message)?;
            input.next();
        }
        if written { Poll::Ready(Checked::Ok(())) } else { Poll::Pending }
    })
    .await?;
    Ok(Some(end))
}

/// The result of one side, with its transport, which must not be dropped before the other side is done.
type SideResult = Checked<Option<BoxTransport>>;

/// Runs both sides in separate tasks, so that a missed wake-up of one is not hidden by the other.
async fn both(
    left: impl Future<Output = SideResult> + Send + 'static,
    right: impl Future<Output = SideResult> + Send + 'static,
) -> Checked {
    let mut sides = JoinSet::new();
    sides.spawn(left);
    sides.spawn(right);
    let mut ends = Vec::new();
    while let Some(side) = sides.join_next().await {
        ends.push(side??);
    }
    Ok(())
}

async fn flushed(end: &mut BoxTransport) -> Checked {
    Ok(poll_fn(|cx| end.poll_flush(cx)).await.map_err(|error| format!("flushing failed: {error}"))?)
}

fn expect(received: &io::Result<Option<Incoming>>, expected: &Bytes) -> Checked {
    match received {
        Ok(Some(Incoming::Message(message))) if message == expected => Ok(()),
        other => {
            let expected = Ok(Some(Incoming::Message(expected.clone())));
            wrong(format!("instead of {} came {}", shown(&expected), shown(other)))
        }
    }
}

fn shown(received: &io::Result<Option<Incoming>>) -> String {
    match received {
        Ok(Some(Incoming::Message(message))) => {
            let start = String::from_utf8_lossy(&message[..message.len().min(40)]).into_owned();
            format!("`{start}` ({} bytes)", message.len())
        }
        Ok(Some(Incoming::Oversized(_))) => "a message that was too long".into(),
        Ok(Some(Incoming::Failed(failed))) => format!("the failure `{failed}`"),
        Ok(None) => "the end".into(),
        Err(error) => format!("the error `{error}`"),
    }
}

/// JSON of this length: a digit or a string, in which each byte depends on its place.
fn text(length: usize) -> Bytes {
    if length < 2 {
        return Bytes::from_static(b"7");
    }
    let letters = b"abcdefghijklmnopqrstuvw";
    let mut text = Vec::with_capacity(length + letters.len());
    text.push(b'"');
    text.extend(letters.repeat(length / letters.len() + 1));
    text.truncate(length - 1);
    text.push(b'"');
    text.into()
}
