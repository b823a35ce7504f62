//! A network that cuts every connection after so many bytes: a call ends with its result or with an error that says so,
//! it is carried out once at most, and the server has nothing left of it.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use pintle::{Connection, Error, client::OpenError, transport::Delivery};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{Notify, Semaphore},
};

use crate::support::{
    eras::{ALL, HTTP_SESSIONS, R2, R3},
    http_server::{World, client, connect, marked, remote, soon},
};

/// Up to where connections are cut.
const FURTHEST: usize = 400;
/// So many at the same time.
const AT_ONCE: usize = 64;
const NEVER: usize = usize::MAX;

/// What stands between: counts the bytes that go one way, and cuts.
struct Scissors {
    address: SocketAddr,
    limit: Arc<Limit>,
}

struct Limit {
    /// After how many bytes, from when it was set, or from when a connection was made.
    after: AtomicUsize,
    /// How often it was set.
    set: AtomicUsize,
    /// Whether it is the server's bytes that count.
    down: bool,
    /// Ends all connections.
    end: Notify,
}

impl Scissors {
    async fn new(server: SocketAddr, down: bool, after: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let limit = Arc::new(Limit {
            after: AtomicUsize::new(after),
            set: AtomicUsize::new(0),
            down,
            end: Notify::new(),
        });
        let limited = limit.clone();
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let Ok(far) = TcpStream::connect(server).await else { continue };
                tokio::spawn(join(near, far, limited.clone()));
            }
        });
        Self { address, limit }
    }

    fn set(&self, after: usize) {
        self.limit.after.store(after, Ordering::SeqCst);
        self.limit.set.fetch_add(1, Ordering::SeqCst);
    }
}

/// Carries bytes both ways. When one way is over, so is the other.
async fn join(near: TcpStream, far: TcpStream, limit: Arc<Limit>) {
    for socket in [&near, &far] {
        let _ = socket.set_nodelay(true);
    }
    let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
    tokio::select! {
        () = carry(near_in, far_out, (!limit.down).then_some(&*limit)) => {}
        () = carry(far_in, near_out, limit.down.then_some(&*limit)) => {}
        () = limit.end.notified() => {}
    }
}

async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, limit: Option<&Limit>) {
    let mut buffer = [0; 4096];
    let (mut set, mut passed) = (0, 0);
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let mut left = NEVER;
        if let Some(limit) = limit {
            let now = limit.set.load(Ordering::SeqCst);
            if std::mem::replace(&mut set, now) != now {
                passed = 0;
            }
            left = limit.after.load(Ordering::SeqCst).saturating_sub(passed);
        }
        if to.write_all(&buffer[..read.min(left)]).await.is_err() || read >= left {
            return;
        }
        passed += read;
    }
}

/// What may become of a call on such a network: never a wrong result, never a timeout, never a second time.
fn judge(world: &World, mark: &str, came: Result<String, Error>) -> bool {
    let carried_out = world.called.lock().unwrap().iter().filter(|called| *called == mark).count();
    match came {
        Ok(text) => {
            assert_eq!((&*text, carried_out), (mark, 1));
            true
        }
        Err(error) => {
            let message = error.to_string();
            assert!(message.len() > 20, "{message}");
            let silent =
                matches!(error, Error::Timeout(_) | Error::Open { error: OpenError::Silent { .. }, .. });
            assert!(!silent, "{mark}: {message}");
            assert!(!matches!(error, Error::Protocol(_) | Error::Decode(_)), "{mark}: {message}");
            assert!(carried_out <= 1, "{mark}: {carried_out} times: {message}");
            if let Error::Failed(failed) = &error
                && failed.delivery == Delivery::Never
            {
                assert_eq!(carried_out, 0, "{mark}: {message}");
            }
            false
        }
    }
}

/// Everywhere. Two revisions differ from the one after them in nothing that could be cut: there some will do.
fn cuts(revision: &str) -> impl Iterator<Item = usize> {
    let step = if [R2, R3].contains(&revision) { 13 } else { 1 };
    (1..=FURTHEST).step_by(step)
}

/// Calls a tool and wants to hear how far it is.
async fn call(connection: &Connection, tool: &str, mark: &str) -> Result<String, Error> {
    let arguments = json!({"mark": mark, "steps": 4});
    let result = connection.call(tool).args(arguments).on_progress(|_| {}).send().await?;
    Ok(result.content[0].as_text().unwrap().to_owned())
}

/// Opens a connection through the scissors, and calls.
async fn all_cuts_of_an_opening(revision: &'static str, down: bool) -> usize {
    let world = Arc::new(World::with_idle_sessions(Duration::from_secs(1)));
    let serving = world.serve().await;
    let address = serving.address();
    let permits = Arc::new(Semaphore::new(AT_ONCE));
    let tasks: Vec<_> = cuts(revision)
        .map(|after| {
            let (world, permits) = (world.clone(), permits.clone());
            tokio::spawn(async move {
                let _permit = permits.acquire().await.unwrap();
                let scissors = Scissors::new(address, down, after).await;
                let mark = format!("{revision}-{after}");
                let client = client(revision, "cut");
                let came = match soon(client.connect(remote(revision, scissors.address))).await {
                    Ok(connection) => soon(marked(&connection, "echo", &mark)).await,
                    Err(error) => Err(error),
                };
                let came = judge(&world, &mark, came);
                scissors.limit.end.notify_waiters();
                came
            })
        })
        .collect();
    let mut came = 0;
    for task in tasks {
        came += usize::from(task.await.unwrap());
    }
    // Sessions whose client never heard of them are forgotten when they have been idle for long enough.
    world.empty().await;
    assert_eq!(serving.shutdown(Duration::from_secs(20)).await.aborted, 0);
    came
}

/// Calls through the scissors on a connection that was opened before.
async fn all_cuts_of_a_call(revision: &'static str, down: bool, tool: &'static str) -> usize {
    let world = Arc::new(World::new());
    let serving = world.serve().await;
    let address = serving.address();
    let permits = Arc::new(Semaphore::new(AT_ONCE));
    let tasks: Vec<_> = cuts(revision)
        .map(|after| {
            let (world, permits) = (world.clone(), permits.clone());
            tokio::spawn(async move {
                let _permit = permits.acquire().await.unwrap();
                let scissors = Scissors::new(address, down, NEVER).await;
                let connection = connect(revision, "cut", scissors.address).await;
                scissors.set(after);
                let mark = format!("{revision}-{tool}-{after}");
                let came = judge(&world, &mark, soon(call(&connection, tool, &mark)).await);
                // The network is whole again: so is the connection, at the latest when it has noticed.
                scissors.set(NEVER);
                let mut again = format!("{mark}-again");
                let mut tries = 0;
                while !judge(&world, &again, soon(call(&connection, tool, &again)).await) {
                    tries += 1;
                    again += "-again";
                    assert!(tries < 5, "{again}");
                }
                soon(connection.close()).await;
                scissors.limit.end.notify_waiters();
                came
            })
        })
        .collect();
    let mut came = 0;
    for task in tasks {
        came += usize::from(task.await.unwrap());
    }
    world.empty().await;
    assert_eq!(serving.shutdown(Duration::from_secs(20)).await.aborted, 0);
    came
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn while_a_connection_is_opened() {
    for revision in ALL {
        for down in [true, false] {
            let came = all_cuts_of_an_opening(revision, down).await;
            eprintln!("{revision}, down: {down}: {came} calls came back");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn while_a_call_is_made() {
    for revision in ALL {
        for down in [true, false] {
            let came = all_cuts_of_a_call(revision, down, "echo").await;
            eprintln!("{revision}, down: {down}: {came} calls came back");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn while_a_stream_brings_progress() {
    for revision in HTTP_SESSIONS {
        let came = all_cuts_of_a_call(revision, true, "steps").await;
        eprintln!("{revision}: {came} streams came to their end");
    }
}
