use std::{
    collections::HashMap,
    future::{Future, poll_fn},
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::{self, JoinSet},
    time::{Instant, Sleep, sleep},
};

use super::{
    shutdown_signal::{DrainService, ShutdownSignal},
    time::{ABORT_GRACE, MAX_DURATION, within},
};
use crate::{server::serving::Stop, transport::open_files};

/// The outcome of shutting down an [`HttpServer`](super::server::HttpServer).
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Shutdown {
    /// Connections that ended within the grace period.
    pub drained: usize,
    /// Connections that were still open after the grace period and were aborted.
    pub aborted: usize,
    /// Calls that were still running after the grace period, with or without a connected client, and were ended with an
    /// error.
    pub cut: usize,
}

/// The delay after a failed accept: with all file descriptors in use, an immediate retry would fail again.
const RETRY_DELAY: Duration = Duration::from_millis(200);

/// The interval at which failed accepts are reported.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// The accept loop of a server, with the tasks of its connections.
pub(super) struct Acceptor {
    tasks: JoinSet<()>,
    stops: HashMap<task::Id, oneshot::Sender<()>>,
    max_connections: usize,
    on_error: Option<AcceptErrorHook>,
    /// When a failed accept was reported last.
    reported: Option<Instant>,
}

/// A callback for errors of accepting connections.
pub(super) type AcceptErrorHook = Arc<dyn Fn(&io::Error) + Send + Sync>;

/// A source of connections.
pub(super) trait Accept: Send + 'static {
    type Socket;

    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(Self::Socket, SocketAddr)>>;
}

impl Accept for TcpListener {
    type Socket = TcpStream;

    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        Self::poll_accept(self, cx)
    }
}

impl Acceptor {
    pub(super) fn new(max_connections: usize, on_error: Option<AcceptErrorHook>) -> Self {
        Self { tasks: JoinSet::new(), stops: HashMap::new(), max_connections, on_error, reported: None }
    }

    /// Reports that no connection can be accepted: while that lasts, once a minute.
    fn report(&mut self, error: io::Error) {
        if self.reported.is_some_and(|last| last.elapsed() < REPORT_INTERVAL) {
            return;
        }
        self.reported = Some(Instant::now());
        let error = open_files::explained(error);
        tracing::warn!("failed to accept a connection, retrying: {error}");
        if let Some(on_error) = &self.on_error {
            on_error(&error);
        }
    }

    /// Accepts connections and starts a task for each until `stop` is requested, then drains them.
    pub(super) async fn run<L: Accept, Fut>(
        mut self,
        listener: L,
        start: impl Fn(L::Socket, SocketAddr, oneshot::Receiver<()>) -> Fut,
        stop: Arc<Stop>,
        signal: ShutdownSignal,
    ) -> Shutdown
    where
        Fut: Future<Output = ()> + Send + 'static,
    {
        let mut delay = None;
        let grace = loop {
            // Ended connections make room, so they come first; a stop request comes before the next connection.
            let next = poll_fn(|cx| {
                while let Poll::Ready(Some(ended)) = self.tasks.poll_join_next_with_id(cx) {
                    self.remove(ended.map(|(id, ())| id));
                }
                if let Some(grace) = stop.asked(cx) {
                    return Poll::Ready(Err(grace));
                }
                if self.max_connections <= self.tasks.len() || is_delayed(&mut delay, cx) {
                    return Poll::Pending;
                }
                listener.poll_accept(cx).map(Ok)
            });
            match next.await {
                Ok(Ok((socket, address))) => {
                    let (stop, stopped) = oneshot::channel();
                    let task = self.tasks.spawn(start(socket, address, stopped));
                    self.stops.insert(task.id(), stop);
                }
                // Only the connection that failed is affected.
                Ok(Err(error)) if is_connection_error(&error) => {}
                Ok(Err(error)) => {
                    self.report(error);
                    delay = Some(Box::pin(sleep(RETRY_DELAY)));
                }
                Err(grace) => break grace,
            }
        };
        drop(listener);
        signal.trigger();
        self.close(grace, &stop, &signal.services()).await
    }

    async fn close(mut self, grace: Duration, stop: &Stop, services: &[Arc<dyn DrainService>]) -> Shutdown {
        let open = self.tasks.len();
        for (_, connection) in self.stops.drain() {
            // Sending fails if the connection has just ended.
            let _ = connection.send(());
        }
        let drained = self.drain(grace, stop, services).await;
        let aborted = self.tasks.len();
        let mut cut = 0;
        if !drained {
            cut = services.iter().map(|service| service.cut_calls()).sum();
            // The errors of the calls that were cut have to be sent first.
            if cut > 0 {
                within(ABORT_GRACE, self.idle(services)).await;
            }
            self.tasks.abort_all();
            // The result is ignored: the aborted connections are counted already.
            within(ABORT_GRACE, self.idle(services)).await;
        }
        services.iter().for_each(|service| service.end_sessions());
        for service in services {
            service.leave_fleet().await;
        }
        Shutdown { drained: open - aborted, aborted, cut }
    }

    /// Waits for all connections and calls to end. Returns whether they did so within the grace period, which a further
    /// stop request may shorten.
    async fn drain(&mut self, grace: Duration, stop: &Stop, services: &[Arc<dyn DrainService>]) -> bool {
        let mut timer = pin!(sleep(grace.min(MAX_DURATION)));
        let mut idle = pin!(self.idle(services));
        poll_fn(|cx| {
            if idle.as_mut().poll(cx).is_ready() {
                return Poll::Ready(true);
            }
            let sooner = stop.asked(cx).map(|grace| Instant::now() + grace.min(MAX_DURATION));
            if let Some(sooner) = sooner.filter(|sooner| *sooner < timer.deadline()) {
                timer.as_mut().reset(sooner);
            }
            timer.as_mut().poll(cx).map(|()| false)
        })
        .await
    }

    /// Waits until no connection is open and no call is running, including calls whose client has disconnected.
    async fn idle(&mut self, services: &[Arc<dyn DrainService>]) {
        while self.tasks.join_next().await.is_some() {}
        for service in services {
            service.idle().await;
        }
    }

    fn remove(&mut self, ended: Result<task::Id, task::JoinError>) {
        let id = ended.unwrap_or_else(|error| {
            if error.is_panic() {
                tracing::error!("the task of a connection panicked");
            }
            error.id()
        });
        self.stops.remove(&id);
    }
}

fn is_delayed(delay: &mut Option<Pin<Box<Sleep>>>, cx: &mut Context<'_>) -> bool {
    let delayed = delay.as_mut().is_some_and(|delay| delay.as_mut().poll(cx).is_pending());
    if !delayed {
        *delay = None;
    }
    delayed
}

fn is_connection_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::{sync::mpsc, task::JoinHandle, time::timeout};

    use super::*;

    /// A listener that yields the connections and errors that a test sends.
    struct Script(Mutex<mpsc::UnboundedReceiver<io::Result<Socket>>>);

    /// A connection that is open until the test drops the other end.
    type Socket = oneshot::Receiver<()>;

    impl Accept for Script {
        type Socket = Socket;

        fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(Socket, SocketAddr)>> {
            let address = SocketAddr::from(([127, 0, 0, 1], 1));
            match self.0.lock().unwrap().poll_recv(cx) {
                Poll::Ready(Some(next)) => Poll::Ready(next.map(|socket| (socket, address))),
                _ => Poll::Pending,
            }
        }
    }

    struct Test {
        listener: mpsc::UnboundedSender<io::Result<Socket>>,
        /// When each connection was accepted.
        accepted: mpsc::UnboundedReceiver<Duration>,
        stop: Arc<Stop>,
        task: JoinHandle<Shutdown>,
        signal: ShutdownSignal,
    }

    /// An acceptor of connections that ignore stop requests.
    fn acceptor(max_connections: usize) -> Test {
        let (listener, script) = mpsc::unbounded_channel();
        let (report, accepted) = mpsc::unbounded_channel();
        let stop = Arc::new(Stop::default());
        let (signal, began) = (ShutdownSignal::new(), Instant::now());
        let start = move |socket: Socket, _, stop: oneshot::Receiver<()>| {
            report.send(began.elapsed()).unwrap();
            async move {
                let _ = socket.await;
                drop(stop);
            }
        };
        let run = Acceptor::new(max_connections, None).run(
            Script(Mutex::new(script)),
            start,
            stop.clone(),
            signal.clone(),
        );
        Test { listener, accepted, stop, task: tokio::spawn(run), signal }
    }

    impl Test {
        fn connect(&self) -> oneshot::Sender<()> {
            let (ours, theirs) = oneshot::channel();
            self.listener.send(Ok(theirs)).unwrap();
            ours
        }

        fn fail(&self, kind: io::ErrorKind) {
            self.listener.send(Err(kind.into())).unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn accepting_is_retried_after_a_delay_when_it_fails() {
        let mut test = acceptor(10);
        test.fail(io::ErrorKind::ConnectionAborted);
        test.fail(io::ErrorKind::ConnectionReset);
        let _first = test.connect();
        assert_eq!(
            test.accepted.recv().await.unwrap(),
            Duration::ZERO,
            "the errors affect the other connections only"
        );

        // As with too many open files.
        test.fail(io::ErrorKind::Other);
        test.fail(io::ErrorKind::Other);
        let _second = test.connect();
        let after = test.accepted.recv().await.unwrap();
        assert!(after >= 2 * RETRY_DELAY && after < 3 * RETRY_DELAY, "{after:?}");
    }

    #[cfg(unix)]
    #[tokio::test(start_paused = true)]
    async fn errors_are_reported_with_their_remedy_once_a_minute() {
        let reports = Arc::new(Mutex::new(Vec::new()));
        let reported = reports.clone();
        let on_error = move |error: &io::Error| reported.lock().unwrap().push(error.to_string());
        let mut acceptor = Acceptor::new(10, Some(Arc::new(on_error)));
        for _ in 0..REPORT_INTERVAL.as_secs() * 3 {
            acceptor.report(io::Error::from_raw_os_error(24));
            sleep(Duration::from_secs(1)).await;
        }
        let reports = reports.lock().unwrap();
        assert_eq!(reports.len(), 3, "{reports:?}");
        assert!(reports[0].contains("`ulimit -n`"), "{reports:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn connections_beyond_the_limit_are_not_accepted() {
        let mut test = acceptor(2);
        let [first, second, _third] = [(); 3].map(|()| test.connect());
        test.accepted.recv().await.unwrap();
        test.accepted.recv().await.unwrap();
        assert!(timeout(Duration::from_secs(60), test.accepted.recv()).await.is_err(), "there is no room");
        drop(first);
        test.accepted.recv().await.unwrap();
        drop(second);
    }

    #[tokio::test(start_paused = true)]
    async fn connections_left_after_the_grace_period_are_aborted_and_counted() {
        let mut test = acceptor(10);
        let [first, second, third] = [(); 3].map(|()| test.connect());
        for _ in 0..3 {
            test.accepted.recv().await.unwrap();
        }
        let began = Instant::now();
        test.stop.ask(Duration::from_secs(50));
        tokio::task::yield_now().await;
        // The shorter grace period applies.
        test.stop.ask(Duration::from_secs(5));
        test.signal.wait().await;
        drop(second);
        assert_eq!(test.task.await.unwrap(), Shutdown { drained: 1, aborted: 2, cut: 0 });
        assert_eq!(began.elapsed(), Duration::from_secs(5));
        assert!(first.is_closed() && third.is_closed(), "their tasks are aborted");
        assert!(test.listener.is_closed(), "the listener is closed");
    }

    #[tokio::test]
    async fn a_connection_that_panics_affects_no_other() {
        let (listener, script) = mpsc::unbounded_channel();
        let stop = Arc::new(Stop::default());
        let started = Arc::new(tokio::sync::Notify::new());
        let starting = started.clone();
        let start = move |_: Socket, _, _| {
            starting.notify_one();
            async { panic!("this is part of the test") }
        };
        let run = Acceptor::new(1, None).run(Script(Mutex::new(script)), start, stop, ShutdownSignal::new());
        let task = tokio::spawn(run);
        for _ in 0..3 {
            listener.send(Ok(oneshot::channel().1)).unwrap();
            started.notified().await;
        }
        task.abort();
    }
}
