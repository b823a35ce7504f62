use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf as _, Bytes};
use http::StatusCode;
use http_body::Body;
use pintle_proto::{
    http::Refusal,
    ledger::{Ceiling, Charge, FREE, Full},
};
use tokio::time::{Instant, Sleep, sleep_until};

use super::{
    content::{BodyBuffer, Content},
    response::overloaded,
    time::MAX_DURATION,
};

/// The limits on the size of a request's body and on the time it may take to arrive.
///
/// A body has to arrive within `first`, plus one second for each `pace` bytes received, and never later than `total`. So a
/// large body has enough time, and a client that sends byte by byte cannot keep a request open.
///
/// ```
/// use pintle::server::http::BodyLimits;
///
/// let mut limits = BodyLimits::default();
/// limits.limit = 1 << 20;
/// ```
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct BodyLimits {
    /// The size limit of a body in bytes. Default: 16 MiB.
    pub limit: usize,
    /// The time in which the first bytes have to arrive. Default: 10 seconds.
    pub first: Duration,
    /// The number of received bytes that extends the time by one second; 0 removes this limit. Default: 1,024.
    pub pace: u32,
    /// The limit on the whole time, however much has arrived. Default: 2 minutes.
    pub total: Duration,
}

impl Default for BodyLimits {
    fn default() -> Self {
        Self { limit: 16 << 20, first: Duration::from_secs(10), pace: 1024, total: Duration::from_secs(120) }
    }
}

impl BodyLimits {
    /// Returns the time limit for a body of which so many bytes have arrived.
    fn time_limit(&self, received: usize) -> Duration {
        let earned = match self.pace {
            0 => Duration::MAX,
            pace => Duration::from_secs_f64(received as f64 / f64::from(pace)),
        };
        self.first.saturating_add(earned).min(self.total).min(MAX_DURATION)
    }
}

/// The reason why a request's body was not read.
#[expect(clippy::exhaustive_enums, reason = "there is either a response to send, or no client to send it to")]
#[derive(Clone, Debug, PartialEq)]
pub enum ReadBodyError {
    /// The body is too large (413) or too slow (408), or too many other bodies are being received (503). Respond with this
    /// refusal.
    Refused(Refusal),
    /// The client disconnected before the end of the body. No response is needed.
    Broken,
}

/// Reads a request's whole body, unless it is too large or too slow.
///
/// A chunk that would exceed the limit is refused before it is buffered. A body that arrives in one chunk is not copied, and
/// a body that is already available needs no timer. Trailers are dropped.
///
/// ```
/// use pintle::server::http::{BodyLimits, ReadBodyError, read_body};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let body = String::from(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
/// let mut limits = BodyLimits::default();
/// assert_eq!(read_body(body.clone(), &limits).await, Ok(body.clone().into()));
///
/// limits.limit = 20;
/// let Err(ReadBodyError::Refused(refusal)) = read_body(body, &limits).await else { panic!("the body is too large") };
/// assert_eq!(refusal.status, 413);
/// # }
/// ```
pub async fn read_body<B: Body>(body: B, limits: &BodyLimits) -> Result<Bytes, ReadBodyError> {
    read_content(body, limits, None::<&std::convert::Infallible>).await.map(Content::into_bytes)
}

/// Reads a request's whole body like [`read_body`], as text where it is known to be UTF-8. A body that is still incomplete
/// is charged to the client as it arrives.
pub(in crate::server::http) async fn read_content<B: Body>(
    body: B,
    limits: &BodyLimits,
    payer: Option<&impl BodyPayer>,
) -> Result<Content, ReadBodyError> {
    let mut charge = BodyCharge { payer, charge: None };
    let mut body = pin!(body);
    let limit = limits.limit;
    let too_large = || ReadBodyError::Refused(Refusal::too_large(limit));
    if too_many(limit, body.size_hint().lower()) {
        return Err(too_large());
    }
    let mut buffer = BodyBuffer::default();
    let mut timer = None;
    loop {
        let frame = poll_fn(|cx| match body.as_mut().poll_frame(cx) {
            Poll::Ready(frame) => Poll::Ready(Ok(frame)),
            Poll::Pending => {
                let timer: &mut BodyTimer = timer.get_or_insert_with(|| BodyTimer::start(limits));
                ready!(timer.poll(limits, buffer.len(), cx));
                Poll::Ready(Err(ReadBodyError::Refused(Refusal::too_slow())))
            }
        });
        let Some(frame) = frame.await? else { return Ok(buffer.finish()) };
        let Ok(data) = frame.map_err(|_| ReadBodyError::Broken)?.into_data() else { continue };
        if limit - buffer.len() < data.remaining() {
            return Err(too_large());
        }
        buffer.add(data, body.size_hint().lower());
        // A body whose length is known ends here, and is not charged.
        if body.is_end_stream() {
            return Ok(buffer.finish());
        }
        charge.grow(buffer.len())?;
    }
}

/// The client that sends a body.
pub(in crate::server::http) trait BodyPayer {
    /// Returns an empty charge of the client.
    fn charge(&self) -> Charge;

    /// Returns the limits of incomplete bodies.
    fn ceiling(&self) -> Ceiling;
}

/// The charge for an incomplete body.
struct BodyCharge<'a, P> {
    payer: Option<&'a P>,
    charge: Option<Charge>,
}

impl<P: BodyPayer> BodyCharge<'_, P> {
    fn grow(&mut self, bytes: usize) -> Result<(), ReadBodyError> {
        let Some(payer) = self.payer.filter(|_| bytes > FREE) else { return Ok(()) };
        let charge = self.charge.get_or_insert_with(|| payer.charge());
        charge.set(bytes, payer.ceiling()).map_err(|full| {
            let status = match full {
                Full::Owner => StatusCode::TOO_MANY_REQUESTS,
                Full::Network | Full::All => StatusCode::SERVICE_UNAVAILABLE,
            };
            ReadBodyError::Refused(overloaded(status, full.to_string()))
        })
    }
}

/// Nobody: the body is not charged.
impl BodyPayer for std::convert::Infallible {
    fn charge(&self) -> Charge {
        match *self {}
    }

    fn ceiling(&self) -> Ceiling {
        match *self {}
    }
}

fn too_many(limit: usize, bytes: u64) -> bool {
    usize::try_from(bytes).map_or(true, |bytes| limit < bytes)
}

/// The deadline of a body, created when the body is first waited for.
struct BodyTimer {
    started: Instant,
    sleep: Pin<Box<Sleep>>,
}

impl BodyTimer {
    fn start(limits: &BodyLimits) -> Self {
        let started = Instant::now();
        Self { started, sleep: Box::pin(sleep_until(started + limits.time_limit(0))) }
    }

    /// Ready when the time limit for this number of received bytes has passed.
    fn poll(&mut self, limits: &BodyLimits, received: usize, cx: &mut Context<'_>) -> Poll<()> {
        let deadline = self.started + limits.time_limit(received);
        if deadline != self.sleep.deadline() {
            self.sleep.as_mut().reset(deadline);
        }
        self.sleep.as_mut().poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use http::StatusCode;
    use http_body::{Frame, SizeHint};

    use super::*;

    /// A body that follows a script.
    struct Script {
        steps: VecDeque<Step>,
        wait: Option<Pin<Box<Sleep>>>,
        announced: u64,
    }

    #[derive(Clone)]
    enum Step {
        Data(Bytes),
        Trailers,
        Wait(Duration),
        Break,
        /// Fails the test: the body was polled again.
        Untouched,
    }

    use Step::{Break, Data, Trailers, Untouched, Wait};

    impl Body for Script {
        type Data = Bytes;
        type Error = &'static str;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
            loop {
                if let Some(wait) = &mut self.wait {
                    ready!(wait.as_mut().poll(cx));
                    self.wait = None;
                }
                return Poll::Ready(match self.steps.pop_front() {
                    Some(Data(data)) => {
                        self.announced = self.announced.saturating_sub(data.len() as u64);
                        Some(Ok(Frame::data(data)))
                    }
                    Some(Trailers) => Some(Ok(Frame::trailers(http::HeaderMap::new()))),
                    Some(Wait(time)) => {
                        self.wait = Some(Box::pin(tokio::time::sleep(time)));
                        continue;
                    }
                    Some(Break) => Some(Err("reset")),
                    Some(Untouched) => panic!("the body was read on after the refusal"),
                    None => None,
                });
            }
        }

        fn size_hint(&self) -> SizeHint {
            let mut hint = SizeHint::new();
            hint.set_lower(self.announced);
            hint
        }
    }

    fn data(text: &'static str) -> Step {
        Data(Bytes::from_static(text.as_bytes()))
    }

    async fn read(announced: u64, steps: impl IntoIterator<Item = Step>) -> Result<Bytes, String> {
        let body = Script { steps: steps.into_iter().collect(), wait: None, announced };
        let limits = BodyLimits { limit: 10, pace: 1, ..BodyLimits::default() };
        read_body(body, &limits).await.map_err(|error| match error {
            ReadBodyError::Refused(refusal) => refusal.status.as_u16().to_string(),
            ReadBodyError::Broken => "broken".into(),
        })
    }

    fn wait(seconds: u64) -> Step {
        Wait(Duration::from_secs(seconds))
    }

    #[tokio::test]
    async fn a_single_chunk_is_not_copied() {
        let piece = Bytes::from(vec![b'7'; 10]);
        let received = read(10, [Data(piece.clone()), Trailers]).await.unwrap();
        assert_eq!(received.as_ptr(), piece.as_ptr());
        assert_eq!(read(0, []).await.unwrap(), "");
        assert_eq!(read(0, [data(""), data("ab"), data("")]).await.unwrap(), "ab");
    }

    #[tokio::test]
    async fn chunks_are_joined_in_order() {
        assert_eq!(read(0, [data("[1"), data(","), Trailers, data("2]")]).await.unwrap(), "[1,2]");
        assert_eq!(read(9, [data("12345"), data("67890")]).await.unwrap(), "1234567890");
    }

    #[tokio::test]
    async fn a_body_that_is_too_large_is_refused_before_it_is_buffered() {
        assert_eq!(read(11, [Untouched]).await.unwrap_err(), "413", "by its announced length");
        assert_eq!(read(u64::MAX, [Untouched]).await.unwrap_err(), "413");
        assert_eq!(read(0, [data("12345678901"), Untouched]).await.unwrap_err(), "413");
        assert_eq!(read(0, [data("12345"), data("678901"), Untouched]).await.unwrap_err(), "413");
    }

    #[tokio::test]
    async fn a_body_that_is_cut_off_is_reported_as_broken() {
        assert_eq!(read(5, [data("12"), Break]).await.unwrap_err(), "broken");
        assert_eq!(read(5, [Break]).await.unwrap_err(), "broken");
    }

    #[tokio::test(start_paused = true)]
    async fn slow_bodies_are_cut_off() {
        let start = Instant::now();
        assert_eq!(read(2, [wait(9), data("ab")]).await.unwrap(), "ab");
        assert_eq!(start.elapsed().as_secs(), 9);

        let start = Instant::now();
        assert_eq!(read(2, [wait(3600), data("ab")]).await.unwrap_err(), "408");
        assert_eq!(start.elapsed().as_secs(), 10);

        // Four bytes extend the time by four seconds.
        let start = Instant::now();
        assert_eq!(read(5, [data("abcd"), wait(3600), data("e")]).await.unwrap_err(), "408");
        assert_eq!(start.elapsed().as_secs(), 14);

        // Each chunk arrives soon after the last one, and the body is too slow all the same.
        let start = Instant::now();
        let drip = (0..8).flat_map(|_| [wait(3), data("a")]);
        assert_eq!(read(8, drip).await.unwrap_err(), "408");
        assert_eq!(start.elapsed().as_secs(), 14);

        let start = Instant::now();
        let steady = (0..8).flat_map(|_| [wait(1), data("a")]);
        assert_eq!(read(8, steady).await.unwrap(), "aaaaaaaa");
        assert_eq!(start.elapsed().as_secs(), 8);
    }

    #[tokio::test(start_paused = true)]
    async fn the_total_time_is_limited_whatever_the_pace() {
        let limits = BodyLimits { pace: 0, ..BodyLimits::default() };
        let steps = (0..100).flat_map(|_| [wait(50), data("a")]).collect();
        let start = Instant::now();
        let unread = read_body(Script { steps, wait: None, announced: 0 }, &limits).await.unwrap_err();
        let ReadBodyError::Refused(refusal) = unread else { panic!("{unread:?}") };
        assert_eq!(refusal.status, StatusCode::REQUEST_TIMEOUT);
        assert_eq!(start.elapsed().as_secs(), 120);

        let forever = BodyLimits { total: Duration::MAX, ..limits };
        let steps = [wait(1_000_000), data("a")].into();
        assert_eq!(read_body(Script { steps, wait: None, announced: 0 }, &forever).await.unwrap(), "a");
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_is_available_needs_no_timer() {
        // Without a runtime's clock a timer would panic: poll it outside of one.
        let read = std::thread::spawn(|| {
            let body = Script { steps: [data("a"), data("b")].into(), wait: None, announced: 0 };
            let limits = BodyLimits::default();
            let mut read = pin!(read_body(body, &limits));
            read.as_mut().poll(&mut Context::from_waker(std::task::Waker::noop()))
        });
        assert_eq!(read.join().unwrap(), Poll::Ready(Ok(Bytes::from_static(b"ab"))));
    }
}
