//! HTTP/1.1 on kept connections, each of which asks again when it is answered.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use bench::wire::{self, Asking, Era};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    task::JoinSet,
};

use crate::{Bounds, Cost, MEASURED, WARM, Workload, server::Program};

pub(crate) async fn measure(program: &Program, workload: Workload, pinned: bool) -> Result<Cost, String> {
    let mut server = program.start("http", pinned)?;
    let stdout = server.child.stdout.take().ok_or("it has no output")?;
    let mut address = String::new();
    BufReader::new(stdout).read_line(&mut address).await.map_err(|error| error.to_string())?;
    let mut connections = Vec::new();
    for _ in 0..workload.in_flight {
        connections.push(Connection::open(address.trim(), workload).await?);
    }
    let (connections, _) = run(connections, WARM).await?;
    let cpu = server.cpu()?;
    let (_, requests) = run(connections, MEASURED).await?;
    Ok(Cost { requests, cpu: server.cpu()?.saturating_sub(cpu) })
}

/// Has all connections ask until as much is asked as may be. How many were answered.
async fn run(connections: Vec<Connection>, bounds: Bounds) -> Result<(Vec<Connection>, usize), String> {
    let until = Instant::now() + bounds.time;
    let begun = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    for mut connection in connections {
        let begun = begun.clone();
        tasks.spawn(async move {
            let mut answered = 0;
            while begun.fetch_add(1, Ordering::Relaxed) < bounds.requests && Instant::now() < until {
                connection.ask(answered % 256 == 0).await?;
                answered += 1;
            }
            Ok::<_, String>((connection, answered))
        });
    }
    let (mut connections, mut requests) = (Vec::new(), 0);
    while let Some(done) = tasks.join_next().await {
        let (connection, answered) = done.map_err(|error| error.to_string())??;
        connections.push(connection);
        requests += answered;
    }
    Ok((connections, requests))
}

struct Connection {
    stream: TcpStream,
    asking: Asking,
    buffer: Vec<u8>,
}

impl Connection {
    async fn open(address: &str, workload: Workload) -> Result<Self, String> {
        let stream = TcpStream::connect(address).await.map_err(|error| format!("`{address}`: {error}"))?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        let Workload { ask, era, .. } = workload;
        let mut this = Self { stream, asking: Asking::post(ask, era, address, None), buffer: Vec::new() };
        if era == Era::Session {
            let [open, done] = wire::handshake();
            let head = this.exchange(&[wire::head(address, open.len(), &[]), open].concat()).await?;
            let session = head.session.ok_or("it gave no session")?;
            let headers = wire::headers(ask, era, Some(&session));
            let head = this.exchange(&[wire::head(address, done.len(), &headers), done].concat()).await?;
            if head.status / 100 != 2 {
                return Err(format!("the handshake was answered with {}", head.status));
            }
            this.asking = Asking::post(ask, era, address, Some(&session));
        }
        Ok(this)
    }

    async fn exchange(&mut self, request: &str) -> Result<Head, String> {
        self.stream.write_all(request.as_bytes()).await.map_err(|error| error.to_string())?;
        self.read().await
    }

    /// Asks once, and looks at the answer.
    async fn ask(&mut self, closely: bool) -> Result<(), String> {
        let request = self.asking.another();
        self.stream.write_all(request).await.map_err(|error| error.to_string())?;
        let head = self.read().await?;
        if head.status != 200 {
            return Err(format!("{}: {}", head.status, String::from_utf8_lossy(&self.buffer)));
        }
        let body = self.buffer.get(head.length..).unwrap_or_default();
        match closely.then(|| self.asking.fault(body)).flatten() {
            Some(fault) => Err(fault),
            None => Ok(()),
        }
    }

    /// Reads one answer into the buffer.
    async fn read(&mut self) -> Result<Head, String> {
        self.buffer.clear();
        let mut head = None;
        loop {
            let came = self.stream.read_buf(&mut self.buffer).await.map_err(|error| error.to_string())?;
            if came == 0 {
                return Err("it hung up".to_owned());
            }
            if head.is_none() {
                head = Head::parse(&self.buffer);
            }
            if let Some(head) = head.take_if(|head| head.is_whole(&self.buffer)) {
                return Ok(head);
            }
        }
    }
}

struct Head {
    length: usize,
    status: u16,
    session: Option<String>,
    body: Option<usize>,
    chunked: bool,
}

impl Head {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let length = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
        let text = std::str::from_utf8(bytes.get(..length)?).ok()?;
        let mut lines = text.split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let mut head = Self { length, status, session: None, body: None, chunked: false };
        for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
            if name.eq_ignore_ascii_case("content-length") {
                head.body = value.parse().ok();
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                head.chunked = value.eq_ignore_ascii_case("chunked");
            } else if name.eq_ignore_ascii_case("mcp-session-id") {
                head.session = Some(value.to_owned());
            }
        }
        Some(head)
    }

    fn is_whole(&self, bytes: &[u8]) -> bool {
        if self.chunked {
            bytes.ends_with(b"\r\n0\r\n\r\n")
        } else {
            bytes.len() >= self.length + self.body.unwrap_or(0)
        }
    }
}
