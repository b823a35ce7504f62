use std::{
    collections::{HashMap, VecDeque},
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
    time::Duration,
};

use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

use super::{cache::Digest, principal::Principal, verify::Rejection};

/// The limit of concurrent questions, so that a flood of tokens does not become one at the authorization server.
const AT_ONCE: usize = 64;
/// The number of slots that are reserved for tokens that were valid before.
const RESERVED: usize = 16;
/// The limit of queued questions of each kind. Each holds a token of at most 16 KiB.
const WAITING: usize = 256;
/// How long a question is queued. After that its client is no longer waiting.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(2);
/// The interval between two log messages about too many questions.
const WARN: Duration = Duration::from_secs(10);

pub(super) type Verdict = Result<Principal, Rejection>;
/// Introspects a token when it is polled.
pub(super) type Question = Pin<Box<dyn Future<Output = Verdict> + Send>>;

/// The running and queued introspections, one for each token.
///
/// The newest starts first, and the oldest is dropped when the queue is full: under a flood a valid token would otherwise
/// wait behind all of it, until its client is gone. A question that no request waits for is not started, and is cancelled if
/// it was.
#[derive(Default)]
pub(super) struct Questions(Mutex<QuestionsState>);

#[derive(Default)]
struct QuestionsState {
    running: usize,
    /// The running and queued questions by token. Other requests subscribe while they hold the lock.
    open: HashMap<Digest, Arc<watch::Sender<Stage>>>,
    /// Queued questions about tokens that were valid before.
    known: VecDeque<Waiting>,
    unknown: VecDeque<Waiting>,
    warned: Option<Instant>,
}

struct Waiting {
    digest: Digest,
    question: Question,
    tell: Arc<watch::Sender<Stage>>,
}

enum Stage {
    Waits,
    Asked,
    Answered(Verdict),
}

impl Questions {
    /// Returns the answer to the question about this token, which is asked once for all requests. `known`: the token was
    /// valid before.
    pub(super) async fn ask(
        self: &Arc<Self>,
        token: Digest,
        known: bool,
        question: impl FnOnce() -> Question,
    ) -> Verdict {
        // It ends without an answer only if the runtime shuts down or the question panics.
        let lost = |_| Rejection::unavailable("the introspection was cancelled");
        let mut stage = self.enter(token, known, question);
        let asked = timeout(QUEUE_TIMEOUT, stage.wait_for(|stage| !matches!(stage, Stage::Waits))).await;
        drop(asked.map_err(|_| self.now().overloaded())?.map_err(lost)?);
        let answered = stage.wait_for(|stage| matches!(stage, Stage::Answered(_))).await.map_err(lost)?;
        match &*answered {
            Stage::Answered(verdict) => verdict.clone(),
            Stage::Waits | Stage::Asked => Err(Rejection::Overloaded),
        }
    }

    fn enter(
        self: &Arc<Self>,
        digest: Digest,
        known: bool,
        question: impl FnOnce() -> Question,
    ) -> watch::Receiver<Stage> {
        let mut now = self.now();
        if let Some(tell) = now.open.get(&digest).cloned() {
            let abandoned = tell.receiver_count() == 0;
            let stage = tell.subscribe();
            if abandoned {
                now.renew(&digest);
            }
            return stage;
        }
        let (tell, stage) = watch::channel(Stage::Waits);
        let waiting = Waiting { digest, question: question(), tell: Arc::new(tell) };
        now.open.insert(digest, waiting.tell.clone());
        if now.running < max_running(known) {
            now.running += 1;
            drop(now);
            self.start(waiting);
            return stage;
        }
        if let Some(given_up) = now.wait(waiting, known) {
            let overloaded = now.overloaded();
            drop(now);
            given_up.tell.send_replace(Stage::Answered(Err(overloaded)));
        }
        stage
    }

    /// Runs the question and then queued ones, in a task of its own: other requests may wait for the same answer.
    fn start(self: &Arc<Self>, first: Waiting) {
        let mut turn = Turn { questions: self.clone(), digest: Some(first.digest) };
        tokio::spawn(async move {
            let mut next = Some(first);
            while let Some(waiting) = next {
                turn.questions.asked(waiting).await;
                next = turn.questions.next();
                turn.digest = next.as_ref().map(|waiting| waiting.digest);
            }
        });
    }

    async fn asked(&self, waiting: Waiting) {
        let Waiting { digest, mut question, tell } = waiting;
        tell.send_replace(Stage::Asked);
        loop {
            let answered = {
                let mut left = pin!(tell.closed());
                // The answer first: it may be ready when the last receiver leaves.
                let answered = poll_fn(|cx| match question.as_mut().poll(cx) {
                    Poll::Ready(verdict) => Poll::Ready(Some(verdict)),
                    Poll::Pending => left.as_mut().poll(cx).map(|()| None),
                });
                answered.await
            };
            let mut now = self.now();
            // A receiver may have subscribed just after the last one left.
            if answered.is_none() && tell.receiver_count() > 0 {
                continue;
            }
            now.open.remove(&digest);
            drop(now);
            if let Some(verdict) = answered {
                tell.send_replace(Stage::Answered(verdict));
            }
            return;
        }
    }

    /// Returns the next question after one is done.
    fn next(&self) -> Option<Waiting> {
        let mut now = self.now();
        let (next, left) = now.next();
        if next.is_none() {
            now.running -= 1;
        }
        drop(now);
        drop(left);
        next
    }

    fn now(&self) -> MutexGuard<'_, QuestionsState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the numbers of running and of queued questions.
    #[cfg(test)]
    pub(super) fn counts(&self) -> (usize, usize) {
        let now = self.now();
        assert!(now.open.len() <= now.running + now.known.len() + now.unknown.len());
        (now.running, now.known.len() + now.unknown.len())
    }
}

/// Returns the limit of running questions, for tokens that were valid before or not.
fn max_running(known: bool) -> usize {
    if known { AT_ONCE } else { AT_ONCE - RESERVED }
}

impl QuestionsState {
    /// Returns the rejection of a dropped question, and logs it from time to time.
    fn overloaded(&mut self) -> Rejection {
        if self.warned.is_none_or(|warned| warned.elapsed() >= WARN) {
            self.warned = Some(Instant::now());
            tracing::warn!("too many tokens to introspect; some requests get status 503");
        }
        Rejection::Overloaded
    }

    /// Queues a question. Returns the one that is dropped for it.
    fn wait(&mut self, waiting: Waiting, known: bool) -> Option<Waiting> {
        let Self { open, known: knowns, unknown, .. } = self;
        let queue = if known { knowns } else { unknown };
        let mut given_up = None;
        if queue.len() >= WAITING {
            // One without receivers, or else the oldest.
            let left = queue.iter().position(|waiting| waiting.tell.receiver_count() == 0);
            given_up = queue.remove(left.unwrap_or_default());
        }
        if let Some(waiting) = &given_up {
            open.remove(&waiting.digest);
        }
        queue.push_back(waiting);
        given_up
    }

    /// Makes a queued question the newest one, because another request asks it.
    fn renew(&mut self, digest: &Digest) {
        for queue in [&mut self.known, &mut self.unknown] {
            let at = queue.iter().position(|waiting| waiting.digest == *digest);
            if let Some(waiting) = at.and_then(|at| queue.remove(at)) {
                queue.push_back(waiting);
            }
        }
    }

    /// Returns the newest question that a request waits for, and removes those without receivers.
    fn next(&mut self) -> (Option<Waiting>, Vec<Waiting>) {
        let mut left = Vec::new();
        let Self { running, open, known, unknown, .. } = self;
        let queues = [(known, max_running(true)), (unknown, max_running(false))];
        for (queue, max_running) in queues {
            while *running <= max_running
                && let Some(waiting) = queue.pop_back()
            {
                if waiting.tell.receiver_count() > 0 {
                    return (Some(waiting), left);
                }
                open.remove(&waiting.digest);
                left.push(waiting);
            }
        }
        (None, left)
    }
}

/// The right to run a question, released even if it panics.
struct Turn {
    questions: Arc<Questions>,
    /// The token of the question. `None`: the right was released when the queue was empty.
    digest: Option<Digest>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(digest) = self.digest {
            let mut now = self.questions.now();
            now.running -= 1;
            now.open.remove(&digest);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{net::IpAddr, sync::atomic::AtomicUsize, sync::atomic::Ordering};

    use bytes::Bytes;
    use http::{Request, Response};
    use serde_json::json;
    use tokio::time::{Instant, sleep};

    use super::{
        super::{
            Introspection, Reach, Registered, Token, Verify, Web,
            kit::{ISSUER, RESOURCE},
        },
        *,
    };

    /// How long the authorization server takes for an answer.
    const TAKES: Duration = Duration::from_millis(30);

    /// An authorization server that takes its time, and knows tokens that begin with `good`.
    #[derive(Clone, Default)]
    struct Slow(Arc<AtomicUsize>);

    impl Web for Slow {
        async fn send(&self, request: Request<Bytes>, _: Reach) -> pintle::Result<Response<Bytes>> {
            if request.uri().path() != "/introspect" {
                let endpoint = format!("{ISSUER}/introspect");
                let body = json!({ "issuer": ISSUER, "introspection_endpoint": endpoint });
                return Ok(Response::new(body.to_string().into()));
            }
            self.0.fetch_add(1, Ordering::Relaxed);
            sleep(TAKES).await;
            let good = request.body().starts_with(b"token=good");
            let body = json!({ "active": good, "aud": RESOURCE, "sub": "ann" });
            Ok(Response::new(body.to_string().into()))
        }

        async fn addresses(&self, _: &str) -> Vec<IpAddr> {
            Vec::new()
        }
    }

    fn asking(web: &Slow) -> Introspection {
        let us = Registered::new(ISSUER, "notes").secret("s3cret");
        Introspection::new(us).unwrap().web(web.clone())
    }

    fn verify(asking: &Introspection, token: String) -> impl Future<Output = Verdict> + Send + 'static {
        let asking = asking.clone();
        async move { asking.verify(Token::new(token, RESOURCE)).await }
    }

    #[tokio::test(start_paused = true)]
    async fn a_good_token_does_not_wait_for_twenty_thousand_that_are_nonsense() {
        let web = Slow::default();
        let asking = asking(&web);
        let flood: Vec<_> =
            (0..20_000).map(|at| tokio::spawn(verify(&asking, format!("nonsense-{at}")))).collect();
        for _ in 0..2_000 {
            tokio::task::yield_now().await;
        }
        let since = Instant::now();
        verify(&asking, "good".into()).await.unwrap();
        assert!(since.elapsed() <= 2 * TAKES, "{:?}", since.elapsed());
        let (mut invalid, mut overloaded) = (0, 0);
        for one in flood {
            match one.await.unwrap().unwrap_err() {
                Rejection::Invalid(_) => invalid += 1,
                Rejection::Overloaded => overloaded += 1,
                other => panic!("{other}"),
            }
        }
        assert_eq!(
            (invalid, overloaded),
            (max_running(false) + WAITING - 1, 20_000 - max_running(false) - WAITING + 1)
        );
        assert_eq!(web.0.load(Ordering::Relaxed), invalid + 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_that_was_good_before_has_places_of_its_own() {
        let web = Slow::default();
        let asking = asking(&web).cache_for(Duration::ZERO);
        verify(&asking, "good".into()).await.unwrap();
        let flood = |name: &str| {
            let all = (0..1000).map(|at| tokio::spawn(verify(&asking, format!("{name}-{at}"))));
            all.collect::<Vec<_>>()
        };
        let before = flood("before");
        tokio::task::yield_now().await;
        let known = tokio::spawn(verify(&asking, "good".into()));
        tokio::task::yield_now().await;
        // Newer ones come all the time, and none of them is asked before it.
        let after = flood("after");
        let since = Instant::now();
        known.await.unwrap().unwrap();
        assert!(since.elapsed() <= TAKES, "{:?}", since.elapsed());
        for one in before.into_iter().chain(after) {
            one.await.unwrap().unwrap_err();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_good_before_is_asked_first_when_everything_is_taken() {
        let questions = Arc::new(Questions::default());
        let gate = Arc::new(tokio::sync::Notify::new());
        let ask = |at: u16, known: bool| {
            let (questions, gate) = (questions.clone(), gate.clone());
            let mut digest = [0; 32];
            digest[..2].copy_from_slice(&at.to_be_bytes());
            tokio::spawn(async move {
                let question = async move {
                    gate.notified().await;
                    Ok(Principal::new(ISSUER, at.to_string()))
                };
                questions.ask(digest, known, || Box::pin(question)).await
            })
        };
        let taken: Vec<_> = (0..u16::try_from(AT_ONCE).unwrap()).map(|at| ask(at, true)).collect();
        let unknown = ask(1000, false);
        let known = ask(1001, true);
        let newest = ask(1002, false);
        sleep(TAKES).await;
        assert_eq!(questions.counts(), (AT_ONCE, 3));
        // Each that is answered makes room for one.
        for _ in 0..=AT_ONCE {
            gate.notify_one();
            sleep(TAKES / 10).await;
        }
        let known = timeout(TAKES, known).await.expect("it is the first of those that wait").unwrap();
        assert_eq!(known.unwrap().subject(), "1001");
        assert!(!newest.is_finished() && !unknown.is_finished());
        for one in taken {
            one.await.unwrap().unwrap();
        }
        for waiting in [newest, unknown] {
            gate.notify_one();
            timeout(TAKES, waiting).await.expect("the newest is the next").unwrap().unwrap();
        }
        assert_eq!(questions.counts(), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_that_is_repeated_after_its_caller_left_is_the_newest() {
        let questions = Arc::new(Questions::default());
        let gate = Arc::new(tokio::sync::Notify::new());
        let ask = |at: u8| {
            let (questions, gate) = (questions.clone(), gate.clone());
            tokio::spawn(async move {
                let question = async move {
                    gate.notified().await;
                    Ok(Principal::new(ISSUER, at.to_string()))
                };
                questions.ask([at; 32], false, || Box::pin(question)).await
            })
        };
        let running: Vec<_> = (0..u8::try_from(max_running(false)).unwrap()).map(ask).collect();
        sleep(TAKES).await;
        let left = ask(200);
        sleep(TAKES).await;
        left.abort();
        let other = ask(201);
        sleep(TAKES).await;
        let repeated = ask(200);
        sleep(TAKES).await;
        assert_eq!(questions.counts(), (running.len(), 2));
        // Each that is answered makes room for one.
        for _ in 0..=running.len() {
            gate.notify_one();
            sleep(TAKES / 10).await;
        }
        let repeated = timeout(TAKES, repeated).await.expect("it is the newest").unwrap();
        assert_eq!(repeated.unwrap().subject(), "200");
        assert!(!other.is_finished());
        gate.notify_one();
        timeout(TAKES, other).await.expect("it is the next").unwrap().unwrap();
        for one in running {
            one.await.unwrap().unwrap();
        }
        assert_eq!(questions.counts(), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_asked_for_callers_that_have_left() {
        let web = Slow::default();
        let asking = asking(&web);
        let flood: Vec<_> =
            (0..200).map(|at| tokio::spawn(verify(&asking, format!("nonsense-{at}")))).collect();
        sleep(TAKES / 2).await;
        for one in &flood {
            one.abort();
        }
        sleep(10 * TAKES).await;
        assert_eq!(web.0.load(Ordering::Relaxed), max_running(false));
        verify(&asking, "good".into()).await.unwrap();
        assert_eq!(web.0.load(Ordering::Relaxed), max_running(false) + 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_that_is_not_asked_soon_is_given_up() {
        let questions = Arc::new(Questions::default());
        let ask = |at: u8| {
            let questions = questions.clone();
            let never = || Box::pin(std::future::pending()) as Question;
            tokio::spawn(async move { questions.ask([at; 32], false, never).await })
        };
        let asked: Vec<_> = (0..u8::try_from(max_running(false)).unwrap()).map(ask).collect();
        tokio::task::yield_now().await;
        let since = Instant::now();
        assert_eq!(ask(255).await.unwrap().unwrap_err(), Rejection::Overloaded);
        assert_eq!(since.elapsed(), QUEUE_TIMEOUT);
        assert!(asked.iter().all(|asked| !asked.is_finished()));
        for asked in asked {
            asked.abort();
        }
        sleep(QUEUE_TIMEOUT).await;
        assert_eq!(questions.counts(), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_that_fails_in_a_way_nobody_thought_of_gives_its_place_back() {
        let questions = Arc::new(Questions::default());
        for _ in 0..2 * AT_ONCE {
            let broken = || Box::pin(std::future::poll_fn(|_| panic!("as this test wants it"))) as Question;
            let error = questions.ask([0; 32], false, broken).await.unwrap_err();
            assert!(matches!(error, Rejection::Unavailable(_)), "{error}");
        }
        assert_eq!(questions.counts(), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn some_slots_are_for_tokens_that_were_valid_before() {
        let questions = Arc::new(Questions::default());
        let ask = |at: u8, known: bool| {
            let questions = questions.clone();
            let never = || Box::pin(std::future::pending()) as Question;
            tokio::spawn(async move { questions.ask([at; 32], known, never).await })
        };
        let _unknown: Vec<_> = (0..100).map(|at| ask(at, false)).collect();
        sleep(TAKES).await;
        assert_eq!(questions.counts(), (48, 52));
        let _known: Vec<_> = (100..200).map(|at| ask(at, true)).collect();
        sleep(TAKES).await;
        assert_eq!(questions.counts(), (64, 136));
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_queue_drops_what_no_request_waits_for_before_the_oldest() {
        let questions = Arc::new(Questions::default());
        let ask = |at: usize| {
            let questions = questions.clone();
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&at.to_be_bytes());
            let never = || Box::pin(std::future::pending()) as Question;
            tokio::spawn(async move { questions.ask(digest, false, never).await })
        };
        let running: Vec<_> = (0..max_running(false)).map(ask).collect();
        let queued: Vec<_> = (1000..1000 + WAITING).map(ask).collect();
        sleep(TAKES).await;
        assert_eq!(questions.counts(), (running.len(), WAITING));
        queued[7].abort();
        sleep(TAKES).await;
        let _newest = ask(5000);
        sleep(TAKES).await;
        assert!(!queued[0].is_finished(), "there was one that no request waited for");
        let _newer = ask(5001);
        sleep(TAKES).await;
        assert!(queued[0].is_finished() && !queued[1].is_finished(), "then it is the oldest");
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_logged_from_time_to_time() {
        let mut state = QuestionsState::default();
        let mut logged = |after: Duration| {
            let warned = state.warned;
            state.overloaded();
            (after, state.warned != warned)
        };
        assert!(logged(Duration::ZERO).1);
        for (after, expected) in [(WARN / 2, false), (WARN / 2, true), (WARN - WARN / 10, false)] {
            tokio::time::advance(after).await;
            assert_eq!(logged(after), (after, expected));
        }
    }
}
