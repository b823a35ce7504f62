//! The cost of a Redis beside memory, with one service in this process, over HTTP and without sockets: `fleet REDIS [calls] [sessions] [events]` prints a table. The
//! Redis is one that is started for it: it is emptied.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::{
    future::poll_fn,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    pin::pin,
    time::{Duration, Instant},
};

use bench::{
    http::post,
    served,
    wire::{self, Ask, Asking, Era},
};
use bytes::Bytes;
use http::StatusCode;
use http_body::Body as _;
use pintle::server::{
    StateKeys,
    http::{
        Http,
        log::{EventId, EventLog as _},
    },
};
use pintle_redis::{Redis, RedisOptions};
use rustix::time::{ClockId, clock_gettime};
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot},
    task::JoinSet,
};
use tower_service::Service as _;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Every row is measured so often, in turns; the median counts, as does that of the ratios within a round. How many requests a server
/// finds when it wakes up is chance: the least of a row would be its luck.
const ROUNDS: usize = 21;
/// The goals of a call with Redis beside one with memory.
const STATELESS_GOAL: f64 = 1.05;
const SESSION_GOAL: f64 = 2.0;
/// The number of sessions that are opened at a time, and of streams that are written.
const AT_ONCE: usize = 64;
/// The number of clients over HTTP.
const CONNECTIONS: usize = 64;
const UNSENDABLE: &str = "a request cannot be made";

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("the URL of a Redis that may be emptied is missing")?;
    let mut number = |default: usize| arguments.next().map_or(Ok(default), |word| word.parse());
    let (calls, sessions, events) = (number(10_000)?, number(100_000)?, number(50_000)?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure(&url, calls, sessions, events))
}

fn service() -> Result<Http, Error> {
    let server = served::server().state_keys(StateKeys::from([7; 32]));
    Ok(server.http()?.max_sessions(200_000).max_sessions_per_address(200_000))
}

/// The CPU time of this process.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// The CPU time of this thread.
fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// Opens a session, and returns its id.
async fn open(http: &mut Http) -> Result<String, Error> {
    let [hello, done] = wire::handshake().map(String::into_bytes);
    let Ok(response) = http.call(post(hello, &[]).ok_or(UNSENDABLE)?).await;
    let id = response.headers().get("mcp-session-id").ok_or("no session was opened")?.to_str()?.to_owned();
    let headers = wire::headers(Ask::Echo, Era::Session, Some(&id));
    let Ok(_) = http.call(post(done, &headers).ok_or(UNSENDABLE)?).await;
    Ok(id)
}

/// Returns the microseconds of CPU and of time that a call costs in this process, without sockets.
async fn call(http: &mut Http, era: Era, calls: usize) -> Result<[f64; 2], Error> {
    let session = match era {
        Era::Session => Some(open(http).await?),
        Era::Stateless => None,
    };
    let (body, _) = wire::body(Ask::Echo, era);
    let template = post(body, &wire::headers(Ask::Echo, era, session.as_deref())).ok_or(UNSENDABLE)?;
    let (start, before) = (Instant::now(), cpu());
    for _ in 0..calls {
        let Ok(response) = http.call(template.clone()).await;
        assert_eq!(response.status(), StatusCode::OK);
        let mut body = pin!(response.into_body());
        while let Some(Ok(frame)) = poll_fn(|task| body.as_mut().poll_frame(task)).await {
            drop(frame);
        }
    }
    let each = |time: Duration| time.as_secs_f64() * 1e6 / calls as f64;
    Ok([each(cpu() - before), each(start.elapsed())])
}

/// Returns the microseconds of CPU and of time that a call costs a server on this thread. Its clients are on threads of their own, with
/// a connection each.
async fn call_served(http: &Http, era: Era, calls: usize) -> Result<[f64; 2], Error> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let serving = http.clone().at("/mcp").serve(listener)?;
    let serving = tokio::spawn(async move { serving.wait().await });
    let (is_ready, mut ready) = mpsc::channel(CONNECTIONS);
    let (mut starts, mut clients) = (Vec::new(), Vec::new());
    for _ in 0..CONNECTIONS {
        let (start, started) = oneshot::channel();
        let (done, client) = oneshot::channel();
        let is_ready = is_ready.clone();
        std::thread::spawn(move || {
            let asked = ask_often(address, era, calls / CONNECTIONS, move || {
                let is_sent = is_ready.blocking_send(()).is_ok();
                // Or a client that has failed would be waited for.
                drop(is_ready);
                is_sent && started.blocking_recv().is_ok()
            });
            done.send(asked.map_err(|error| error.to_string()))
        });
        starts.push(start);
        clients.push(client);
    }
    drop(is_ready);
    for _ in 0..CONNECTIONS {
        ready.recv().await.ok_or("a client has failed")?;
    }
    let (start, before) = (Instant::now(), thread_cpu());
    for start in starts {
        start.send(()).map_err(|()| "a client has failed")?;
    }
    for client in clients {
        client.await??;
    }
    let calls = calls / CONNECTIONS * CONNECTIONS;
    let each = |time: Duration| time.as_secs_f64() * 1e6 / calls as f64;
    let measured = [each(thread_cpu() - before), each(start.elapsed())];
    serving.abort();
    Ok(measured)
}

/// Opens a session if the era has them, waits for the start, and calls.
fn ask_often(
    address: SocketAddr,
    era: Era,
    calls: usize,
    start: impl FnOnce() -> bool,
) -> std::io::Result<()> {
    let host = address.to_string();
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let mut session = None;
    if era == Era::Session {
        for message in wire::handshake() {
            let headers =
                session.as_deref().map(|id| wire::headers(Ask::Echo, era, Some(id))).unwrap_or_default();
            stream.write_all(wire::head(&host, message.len(), &headers).as_bytes())?;
            stream.write_all(message.as_bytes())?;
            let head = read_response(&mut stream)?;
            let id = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
            session = session.or(id.map(str::to_owned));
        }
    }
    let mut asking = Asking::post(Ask::Echo, era, &host, session.as_deref());
    stream.write_all(asking.another())?;
    let head = read_response(&mut stream)?;
    if !head.starts_with("HTTP/1.1 200 ") {
        return Err(std::io::Error::other(head));
    }
    if !start() {
        return Err(std::io::ErrorKind::BrokenPipe.into());
    }
    for _ in 0..calls {
        stream.write_all(asking.another())?;
        read_response(&mut stream)?;
    }
    Ok(())
}

/// Reads a response with a length, and returns its head.
fn read_response(stream: &mut TcpStream) -> std::io::Result<String> {
    const END: &[u8] = b"\r\n\r\n";
    let (mut buffer, mut came) = ([0; 4096], 0);
    loop {
        let read = stream.read(buffer.get_mut(came..).unwrap_or_default())?;
        if read == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        came += read;
        let so_far = buffer.get(..came).unwrap_or_default();
        let Some(end) = so_far.windows(END.len()).position(|bytes| bytes == END) else { continue };
        let head = String::from_utf8_lossy(so_far.get(..end).unwrap_or_default()).into_owned();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.and_then(|length| length.parse().ok()).unwrap_or(0);
        if came >= end + END.len() + length {
            return Ok(head);
        }
    }
}

/// The counters of a Redis.
struct RedisCounters {
    commands: f64,
    /// The number of times that it has read from a connection: a round trip of one client at a time is one.
    reads: f64,
    bytes: f64,
}

async fn counters(connection: &mut redis::aio::MultiplexedConnection) -> Result<RedisCounters, Error> {
    let text: String = redis::cmd("INFO").arg("everything").query_async(connection).await?;
    let number = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|value| value.trim().parse::<f64>().ok()).ok_or(format!("Redis does not say `{name}`"))
    };
    Ok(RedisCounters {
        commands: number("total_commands_processed")?,
        reads: number("total_reads_processed")?,
        bytes: number("used_memory")?,
    })
}

/// The microseconds of CPU and of time of one row, a pair for each round.
type Rounds = Vec<[f64; 2]>;

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Prints the rows of both eras, with memory and with Redis.
fn print_rows(rows: &[Rounds; 4], goals: [String; 2]) {
    let [stateless, shared_stateless, session, shared_session] = rows;
    let eras = [("stateless", stateless, shared_stateless), ("session", session, shared_session)];
    for ((name, own, shared), goal) in eras.into_iter().zip(goals) {
        let [own_cpu, shared_cpu] = [own, shared].map(|row| median(row.iter().map(|[cpu, _]| *cpu)));
        let [own_time, shared_time] = [own, shared].map(|row| median(row.iter().map(|[_, time]| *time)));
        let ratio = median(own.iter().zip(shared).map(|(own, shared)| shared[0] / own[0]));
        println!("| {name}, memory | {own_cpu:.1} | 1 | | {own_time:.0} |");
        println!("| {name}, Redis, sealed | {shared_cpu:.1} | {ratio:.2} | {goal} | {shared_time:.0} |");
    }
}

async fn measure(url: &str, calls: usize, sessions: usize, events: usize) -> Result<(), Error> {
    let mut raw = redis::Client::open(url)?.get_multiplexed_async_connection().await?;
    redis::cmd("FLUSHALL").query_async::<()>(&mut raw).await?;
    let shared = Redis::connect_with(url, RedisOptions::default().seal(StateKeys::from([7; 32]))).await?;
    let (mut memory, mut fleet) = (service()?, service()?.shared(shared.clone()));

    let eras = [Era::Stateless, Era::Session];
    let (mut served, mut alone): ([Rounds; 4], [Rounds; 4]) = Default::default();
    for round in 0..=ROUNDS {
        let rows = eras.into_iter().flat_map(|era| [(era, false), (era, true)]);
        let mut rows: Vec<_> = rows.enumerate().collect();
        // No row is always the one after another.
        if round % 2 == 1 {
            rows.reverse();
        }
        for (row, (era, is_shared)) in rows {
            let http = if is_shared { &mut fleet } else { &mut memory };
            let measured = [call_served(http, era, calls).await?, call(http, era, calls).await?];
            // The first round warms up.
            for (rounds, measured) in
                [&mut served, &mut alone].into_iter().zip(measured).filter(|_| round > 0)
            {
                rounds.get_mut(row).into_iter().for_each(|rounds| rounds.push(measured));
            }
        }
    }
    println!(
        "| a small call over HTTP, {CONNECTIONS} connections | CPU µs | × | goal | µs |\n|---|---:|---:|---:|---:|"
    );
    print_rows(&served, [format!("≤ {STATELESS_GOAL}"), format!("≤ {SESSION_GOAL}")]);
    println!("\n| the same without sockets, one at a time | CPU µs | × | | µs |\n|---|---:|---:|---:|---:|");
    print_rows(&alone, [String::new(), String::new()]);

    let before = counters(&mut raw).await?;
    call(&mut fleet, Era::Session, calls).await?;
    let after = counters(&mut raw).await?;
    println!("\n| in Redis | |\n|---|---:|");
    println!("| round trips of a session's call | {:.2} |", (after.reads - before.reads) / calls as f64);
    println!("| commands of a session's call | {:.2} |", (after.commands - before.commands) / calls as f64);

    redis::cmd("FLUSHALL").query_async::<()>(&mut raw).await?;
    let empty = counters(&mut raw).await?.bytes;
    let start = Instant::now();
    let mut opening = JoinSet::new();
    for opened in 0..sessions {
        let mut http = fleet.clone();
        opening.spawn(async move { open(&mut http).await.map(drop).map_err(|error| error.to_string()) });
        if opened % AT_ONCE == AT_ONCE - 1 {
            while let Some(opened) = opening.join_next().await {
                opened??;
            }
        }
    }
    while let Some(opened) = opening.join_next().await {
        opened??;
    }
    let took = start.elapsed().as_secs_f64();
    let full = counters(&mut raw).await?.bytes;
    println!("| bytes of an idle session, of {sessions} | {:.0} |", (full - empty) / sessions as f64);
    println!("| sessions opened per second | {:.0} |", sessions as f64 / took);

    let data = Bytes::from(vec![b'x'; 256]);
    let start = Instant::now();
    let mut writing = JoinSet::new();
    let each = events / AT_ONCE;
    for stream in 0..AT_ONCE as u64 {
        let (shared, data) = (shared.clone(), data.clone());
        writing.spawn(async move {
            let session = format!("bench-{stream}");
            shared.open(&session, 1, Bytes::new()).await?;
            let mut id = EventId::start(1);
            for _ in 0..each {
                id.place += 1;
                shared.append(&session, id, data.clone()).await?;
            }
            Ok::<_, std::io::Error>(())
        });
    }
    while let Some(written) = writing.join_next().await {
        written??;
    }
    let written = each * AT_ONCE;
    println!(
        "| events of 256 bytes logged per second, {AT_ONCE} streams | {:.0} |",
        written as f64 / start.elapsed().as_secs_f64()
    );
    redis::cmd("FLUSHALL").query_async::<()>(&mut raw).await?;
    Ok(())
}
