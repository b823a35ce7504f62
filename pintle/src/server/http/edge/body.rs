use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::atomic::{AtomicUsize, Ordering},
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf as _, Bytes};
use http::StatusCode;
use http_body::Body;
use pintle_proto::http::Refusal;
use tokio::time::{Instant, Sleep, sleep_until};

use super::{
    content::{Content, Pieces},
    response::overloaded,
};

/// How much of a request's body is taken, and how long it may take to come.
///
/// A body is waited for as long as `first`, and longer by what has come at `pace`; never longer than `total`. So a
/// large body has its time, and one that drips keeps nothing open.
///
/// ```
/// use pintle::server::http::Patience;
///
/// let mut patience = Patience::default();
/// patience.limit = 1 << 20;
/// ```
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Bytes of a body. 16 MiB.
    pub limit: usize,
    /// For how long a body may stand still at its beginning. 10 seconds.
    pub first: Duration,
    /// Bytes that each further second costs. 1,024; without a limit at 0.
    pub pace: u32,
    /// For how long a body may take, however much has come. 2 minutes.
    pub total: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { limit: 16 << 20, first: Duration::from_secs(10), pace: 1024, total: Duration::from_secs(120) }
    }
}

impl Patience {
    /// How long after its beginning a body is given up on of which so much has come.
    fn after(&self, received: usize) -> Duration {
        let earned = match self.pace {
            0 => Duration::MAX,
            pace => Duration::from_secs_f64(received as f64 / f64::from(pace)),
        };
        self.first.saturating_add(earned).min(self.total).min(CENTURY)
    }
}

/// Why a body was not taken.
#[expect(clippy::exhaustive_enums, reason = "it is answered, or there is nobody to answer")]
#[derive(Clone, Debug, PartialEq)]
pub enum Unread {
    /// It is too large (413) or too slow (408), or too much else is on its way (503). This is the answer.
    Refused(Refusal),
    /// It broke off: whoever sent it is gone, and nothing has to be answered.
    Broken,
}

/// Reads a request's whole body, unless it is too large or too slow.
///
/// What would pass the limit is refused before it is held. A body that comes in one piece is not copied, and no timer
/// is made for one that is there already. Trailers are dropped.
///
/// ```
/// use pintle::server::http::{Patience, Unread, read_body};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let body = String::from(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
/// let mut patience = Patience::default();
/// assert_eq!(read_body(body.clone(), &patience).await, Ok(body.clone().into()));
///
/// patience.limit = 20;
/// let Err(Unread::Refused(refusal)) = read_body(body, &patience).await else { panic!("it is too large") };
/// assert_eq!(refusal.status, 413);
/// # }
/// ```
pub async fn read_body<B: Body>(body: B, patience: &Patience) -> Result<Bytes, Unread> {
    read_content(body, patience, None).await.map(Content::into_bytes)
}

/// The same, for who wants to know whether it is text. While more is waited for, what has come has its place in the budget.
pub(in crate::server::http) async fn read_content<B: Body>(
    body: B,
    patience: &Patience,
    budget: Option<&Budget>,
) -> Result<Content, Unread> {
    let mut held = Held { budget, bytes: 0 };
    let mut body = pin!(body);
    let limit = patience.limit;
    let too_large = || Unread::Refused(Refusal::too_large(limit));
    if too_many(limit, body.size_hint().lower()) {
        return Err(too_large());
    }
    let mut taken = Pieces::default();
    let mut clock = None;
    loop {
        let frame = poll_fn(|cx| match body.as_mut().poll_frame(cx) {
            Poll::Ready(frame) => Poll::Ready(Ok(frame)),
            Poll::Pending => {
                let clock: &mut Clock = clock.get_or_insert_with(|| Clock::start(patience));
                ready!(clock.poll_late(patience, taken.len(), cx));
                Poll::Ready(Err(Unread::Refused(Refusal::too_slow())))
            }
        });
        let Some(frame) = frame.await? else { return Ok(taken.done()) };
        let Ok(data) = frame.map_err(|_| Unread::Broken)?.into_data() else { continue };
        if limit - taken.len() < data.remaining() {
            return Err(too_large());
        }
        taken.add(data, body.size_hint().lower());
        // It knows by the length that was said; to ask once more costs about 500 instructions.
        if body.is_end_stream() {
            return Ok(taken.done());
        }
        held.grow(taken.len())?;
    }
}

/// Bytes of bodies that are still coming, of all requests.
#[derive(Debug)]
pub(in crate::server::http) struct Budget {
    left: AtomicUsize,
    whole: usize,
}

impl Budget {
    pub(in crate::server::http) fn new(bytes: usize) -> Self {
        Self { left: AtomicUsize::new(bytes), whole: bytes }
    }
}

/// A body's part of the budget, until it is there or given up.
struct Held<'a> {
    budget: Option<&'a Budget>,
    bytes: usize,
}

impl Held<'_> {
    fn grow(&mut self, bytes: usize) -> Result<(), Unread> {
        let Some(budget) = self.budget else { return Ok(()) };
        let more = bytes.saturating_sub(self.bytes);
        let taken =
            budget.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(more));
        if taken.is_err() {
            let said = format!("bodies of {} bytes are on their way already: try again later", budget.whole);
            return Err(Unread::Refused(overloaded(StatusCode::SERVICE_UNAVAILABLE, said)));
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if let Some(budget) = self.budget {
            budget.left.fetch_add(self.bytes, Ordering::Relaxed);
        }
    }
}

/// What the largest durations are cut to: an instant that late cannot be told.
const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

fn too_many(limit: usize, bytes: u64) -> bool {
    usize::try_from(bytes).map_or(true, |bytes| limit < bytes)
}

/// Made when a body is first waited for.
struct Clock {
    started: Instant,
    late: Pin<Box<Sleep>>,
}

impl Clock {
    fn start(patience: &Patience) -> Self {
        let started = Instant::now();
        Self { started, late: Box::pin(sleep_until(started + patience.after(0))) }
    }

    /// Ready when a body of which so much has come should have brought more.
    fn poll_late(&mut self, patience: &Patience, received: usize, cx: &mut Context<'_>) -> Poll<()> {
        let late = self.started + patience.after(received);
        if late != self.late.deadline() {
            self.late.as_mut().reset(late);
        }
        self.late.as_mut().poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use http::StatusCode;
    use http_body::{Frame, SizeHint};

    use super::*;

    /// A body that does one step after another.
    struct Script {
        steps: VecDeque<Step>,
        wait: Option<Pin<Box<Sleep>>>,
        said: u64,
    }

    #[derive(Clone)]
    enum Step {
        Data(Bytes),
        Trailers,
        Wait(Duration),
        Break,
        /// The test fails if it is asked for more.
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
                        self.said = self.said.saturating_sub(data.len() as u64);
                        Some(Ok(Frame::data(data)))
                    }
                    Some(Trailers) => Some(Ok(Frame::trailers(http::HeaderMap::new()))),
                    Some(Wait(time)) => {
                        self.wait = Some(Box::pin(tokio::time::sleep(time)));
                        continue;
                    }
                    Some(Break) => Some(Err("reset")),
                    Some(Untouched) => panic!("it reads on though it has seen enough"),
                    None => None,
                });
            }
        }

        fn size_hint(&self) -> SizeHint {
            let mut hint = SizeHint::new();
            hint.set_lower(self.said);
            hint
        }
    }

    fn data(text: &'static str) -> Step {
        Data(Bytes::from_static(text.as_bytes()))
    }

    async fn read(said: u64, steps: impl IntoIterator<Item = Step>) -> Result<Bytes, String> {
        let body = Script { steps: steps.into_iter().collect(), wait: None, said };
        let patience = Patience { limit: 10, pace: 1, ..Patience::default() };
        read_body(body, &patience).await.map_err(|unread| match unread {
            Unread::Refused(refusal) => refusal.status.as_u16().to_string(),
            Unread::Broken => "broken".into(),
        })
    }

    fn wait(seconds: u64) -> Step {
        Wait(Duration::from_secs(seconds))
    }

    #[tokio::test]
    async fn one_piece_is_not_copied() {
        let piece = Bytes::from(vec![b'7'; 10]);
        let came = read(10, [Data(piece.clone()), Trailers]).await.unwrap();
        assert_eq!(came.as_ptr(), piece.as_ptr());
        assert_eq!(read(0, []).await.unwrap(), "");
        assert_eq!(read(0, [data(""), data("ab"), data("")]).await.unwrap(), "ab");
    }

    #[tokio::test]
    async fn pieces_are_joined_in_order() {
        assert_eq!(read(0, [data("[1"), data(","), Trailers, data("2]")]).await.unwrap(), "[1,2]");
        assert_eq!(read(9, [data("12345"), data("67890")]).await.unwrap(), "1234567890");
    }

    #[tokio::test]
    async fn too_large_is_refused_before_it_is_held() {
        assert_eq!(read(11, [Untouched]).await.unwrap_err(), "413", "it said so itself");
        assert_eq!(read(u64::MAX, [Untouched]).await.unwrap_err(), "413");
        assert_eq!(read(0, [data("12345678901"), Untouched]).await.unwrap_err(), "413");
        assert_eq!(read(0, [data("12345"), data("678901"), Untouched]).await.unwrap_err(), "413");
    }

    #[tokio::test]
    async fn what_breaks_off_is_nobodys_request() {
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

        // Four bytes have bought four seconds.
        let start = Instant::now();
        assert_eq!(read(5, [data("abcd"), wait(3600), data("e")]).await.unwrap_err(), "408");
        assert_eq!(start.elapsed().as_secs(), 14);

        // Each piece comes soon after the last one, and it is too slow all the same.
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
    async fn no_pace_buys_more_than_all_the_time_there_is() {
        let patience = Patience { pace: 0, ..Patience::default() };
        let steps = (0..100).flat_map(|_| [wait(50), data("a")]).collect();
        let start = Instant::now();
        let unread = read_body(Script { steps, wait: None, said: 0 }, &patience).await.unwrap_err();
        let Unread::Refused(refusal) = unread else { panic!("{unread:?}") };
        assert_eq!(refusal.status, StatusCode::REQUEST_TIMEOUT);
        assert_eq!(start.elapsed().as_secs(), 120);

        let forever = Patience { total: Duration::MAX, ..patience };
        let steps = [wait(1_000_000), data("a")].into();
        assert_eq!(read_body(Script { steps, wait: None, said: 0 }, &forever).await.unwrap(), "a");
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_is_there_needs_no_timer() {
        // Without a runtime's clock a timer would panic: poll it outside of one.
        let read = std::thread::spawn(|| {
            let body = Script { steps: [data("a"), data("b")].into(), wait: None, said: 0 };
            let patience = Patience::default();
            let mut read = pin!(read_body(body, &patience));
            read.as_mut().poll(&mut Context::from_waker(std::task::Waker::noop()))
        });
        assert_eq!(read.join().unwrap(), Poll::Ready(Ok(Bytes::from_static(b"ab"))));
    }
}
