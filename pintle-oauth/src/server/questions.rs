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

/// Questions that are asked at the same time. Whoever sends nonsense must not make us a flood for somebody else.
const AT_ONCE: usize = 64;
/// How many of those are kept for tokens that were good before: nonsense never was.
const RESERVED: usize = 16;
/// Questions of each kind that wait. One has a token of 16 KiB with it at most.
const WAITING: usize = 256;
/// For so long a question waits until it is asked. An answer that comes later is one for which nobody waits any more.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often it is logged that there are too many.
const WARN: Duration = Duration::from_secs(10);

pub(super) type Verdict = Result<Principal, Rejection>;
/// Asks the authorization server when it is polled, and does nothing before.
pub(super) type Question = Pin<Box<dyn Future<Output = Verdict> + Send>>;

/// The questions about tokens that are asked and that wait to be asked: a few at a time, one for each token.
///
/// The newest is asked first, and the oldest is given up when there are too many: under a flood a good token would wait
/// behind all of it otherwise, and be answered when its client is long gone. A question for whose answer nobody waits is
/// not asked, and given up if it was.
#[derive(Default)]
pub(super) struct Questions(Mutex<Now>);

#[derive(Default)]
struct Now {
    running: usize,
    /// Those that are asked or wait. Who wants the answer too subscribes while it holds the lock.
    open: HashMap<Digest, Arc<watch::Sender<Stage>>>,
    /// About tokens that were good before.
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
    /// The answer to a question about this token, which is asked unless it is being asked. `known`: the token was good
    /// before.
    pub(super) async fn ask(
        self: &Arc<Self>,
        token: Digest,
        known: bool,
        question: impl FnOnce() -> Question,
    ) -> Verdict {
        // It ends without an answer only with the runtime, or if asking fails in a way that nobody thought of.
        let lost = |_| Rejection::unavailable("the question was given up");
        let mut told = self.enter(token, known, question);
        let asked = timeout(PATIENCE, told.wait_for(|stage| !matches!(stage, Stage::Waits))).await;
        drop(asked.map_err(|_| self.now().overloaded())?.map_err(lost)?);
        let answered = told.wait_for(|stage| matches!(stage, Stage::Answered(_))).await.map_err(lost)?;
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
            let told = tell.subscribe();
            if abandoned {
                now.renew(&digest);
            }
            return told;
        }
        let (tell, told) = watch::channel(Stage::Waits);
        let waiting = Waiting { digest, question: question(), tell: Arc::new(tell) };
        now.open.insert(digest, waiting.tell.clone());
        if now.running < most(known) {
            now.running += 1;
            drop(now);
            self.start(waiting);
            return told;
        }
        if let Some(given_up) = now.wait(waiting, known) {
            let overloaded = now.overloaded();
            drop(now);
            given_up.tell.send_replace(Stage::Answered(Err(overloaded)));
        }
        told
    }

    /// Asks, and whatever waits after that. Apart from the request: others may wait for the same answer.
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
                // The answer first: it may be there when the last one leaves.
                let answered = poll_fn(|cx| match question.as_mut().poll(cx) {
                    Poll::Ready(verdict) => Poll::Ready(Some(verdict)),
                    Poll::Pending => left.as_mut().poll(cx).map(|()| None),
                });
                answered.await
            };
            let mut now = self.now();
            // Somebody may have come just after the last one left.
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

    /// The question to ask now that another is done with.
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

    fn now(&self) -> MutexGuard<'_, Now> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many are asked, and how many wait.
    #[cfg(test)]
    pub(super) fn counts(&self) -> (usize, usize) {
        let now = self.now();
        assert!(now.open.len() <= now.running + now.known.len() + now.unknown.len());
        (now.running, now.known.len() + now.unknown.len())
    }
}

/// How many may be asked at the same time, by those who ask for a token that was good before or was not.
fn most(known: bool) -> usize {
    if known { AT_ONCE } else { AT_ONCE - RESERVED }
}

impl Now {
    /// What is said of a question that is given up, and once in a while to the log.
    fn overloaded(&mut self) -> Rejection {
        if self.warned.is_none_or(|warned| warned.elapsed() >= WARN) {
            self.warned = Some(Instant::now());
            tracing::warn!("more tokens come than can be asked about: some requests are told to come again");
        }
        Rejection::Overloaded
    }

    /// Has a question wait. Returns the one that has to go for it.
    fn wait(&mut self, waiting: Waiting, known: bool) -> Option<Waiting> {
        let Self { open, known: knowns, unknown, .. } = self;
        let queue = if known { knowns } else { unknown };
        let mut given_up = None;
        if queue.len() >= WAITING {
            // One whose callers have left, or else the oldest.
            let left = queue.iter().position(|waiting| waiting.tell.receiver_count() == 0);
            given_up = queue.remove(left.unwrap_or_default());
        }
        if let Some(waiting) = &given_up {
            open.remove(&waiting.digest);
        }
        queue.push_back(waiting);
        given_up
    }

    /// Makes a question that waits the newest one: somebody asks it again whom it had been given up for.
    fn renew(&mut self, digest: &Digest) {
        for queue in [&mut self.known, &mut self.unknown] {
            let at = queue.iter().position(|waiting| waiting.digest == *digest);
            if let Some(waiting) = at.and_then(|at| queue.remove(at)) {
                queue.push_back(waiting);
            }
        }
    }

    /// The newest for whose answer somebody still waits, and those that nobody waits for.
    fn next(&mut self) -> (Option<Waiting>, Vec<Waiting>) {
        let mut left = Vec::new();
        let Self { running, open, known, unknown, .. } = self;
        let queues = [(known, most(true)), (unknown, most(false))];
        for (queue, most) in queues {
            while *running <= most
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

/// The right to ask, given back also if asking fails in a way that nobody thought of.
struct Turn {
    questions: Arc<Questions>,
    /// What is asked. `None`: the right was given back when there was nothing to ask any more.
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
        assert_eq!((invalid, overloaded), (most(false) + WAITING - 1, 20_000 - most(false) - WAITING + 1));
        assert_eq!(web.0.load(Ordering::Relaxed), invalid + 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_that_was_good_before_has_places_of_its_own() {
        let web = Slow::default();
        let asking = asking(&web).remembered(Duration::ZERO);
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
        assert_eq!(web.0.load(Ordering::Relaxed), most(false));
        verify(&asking, "good".into()).await.unwrap();
        assert_eq!(web.0.load(Ordering::Relaxed), most(false) + 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_that_is_not_asked_soon_is_given_up() {
        let questions = Arc::new(Questions::default());
        let ask = |at: u8| {
            let questions = questions.clone();
            let never = || Box::pin(std::future::pending()) as Question;
            tokio::spawn(async move { questions.ask([at; 32], false, never).await })
        };
        let asked: Vec<_> = (0..u8::try_from(most(false)).unwrap()).map(ask).collect();
        tokio::task::yield_now().await;
        let since = Instant::now();
        assert_eq!(ask(255).await.unwrap().unwrap_err(), Rejection::Overloaded);
        assert_eq!(since.elapsed(), PATIENCE);
        assert!(asked.iter().all(|asked| !asked.is_finished()));
        for asked in asked {
            asked.abort();
        }
        sleep(PATIENCE).await;
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
}
