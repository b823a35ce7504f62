//! HTTP: the service alone, called in memory, and the whole server on a socket of this machine beside the limit.
//!
//! The client on the socket blocks on a thread of its own and does next to nothing, so what is counted is the server.

use std::{
    future::{Future as _, poll_fn},
    hint::black_box,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    pin::{Pin, pin},
    time::Duration,
};

use bytes::Bytes;
use http::Request;
use http_body::Body as _;
use pintle::server::http::Http;
use tokio::{net::TcpListener, sync::oneshot};
use tower_service::Service as _;

use crate::{
    full::Full,
    limit,
    protocol::Case,
    served,
    wire::{self, Ask, Asking, Era},
};

/// All of them.
pub const CASES: &[Case] = &[
    Case { name: "HTTP request, made and dropped", run: |n| service(n, Ask::Echo, Era::Stateless, false) },
    Case { name: "HTTP service, session", run: |n| service(n, Ask::Echo, Era::Session, true) },
    Case { name: "HTTP service, stateless", run: |n| service(n, Ask::Echo, Era::Stateless, true) },
    Case { name: "HTTP service, list of 104, session", run: |n| service(n, Ask::List, Era::Session, true) },
    Case {
        name: "HTTP service, list of 104, stateless",
        run: |n| service(n, Ask::List, Era::Stateless, true),
    },
    Case { name: "HTTP limit, session", run: |n| socket(n, Ask::Echo, Era::Session, true) },
    Case { name: "HTTP limit, stateless", run: |n| socket(n, Ask::Echo, Era::Stateless, true) },
    Case { name: "HTTP limit, list of 104, stateless", run: |n| socket(n, Ask::List, Era::Stateless, true) },
    Case { name: "HTTP limit, 64 KiB, stateless", run: |n| socket(n, KIBIBYTES, Era::Stateless, true) },
    Case { name: "HTTP limit, 1 MiB, stateless", run: |n| socket(n, MEBIBYTE, Era::Stateless, true) },
    Case { name: "HTTP whole, session", run: |n| socket(n, Ask::Echo, Era::Session, false) },
    Case { name: "HTTP whole, stateless", run: |n| socket(n, Ask::Echo, Era::Stateless, false) },
    Case { name: "HTTP whole, list of 104, stateless", run: |n| socket(n, Ask::List, Era::Stateless, false) },
    Case { name: "HTTP whole, 64 KiB, session", run: |n| socket(n, KIBIBYTES, Era::Session, false) },
    Case { name: "HTTP whole, 64 KiB, stateless", run: |n| socket(n, KIBIBYTES, Era::Stateless, false) },
    Case { name: "HTTP whole, 1 MiB, session", run: |n| socket(n, MEBIBYTE, Era::Session, false) },
    Case { name: "HTTP whole, 1 MiB, stateless", run: |n| socket(n, MEBIBYTE, Era::Stateless, false) },
];

const KIBIBYTES: Ask = Ask::Large(64 << 10);
const MEBIBYTE: Ask = Ask::Large(1 << 20);

pub(crate) fn runtime() -> Option<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().ok()
}

/// A request with head and body goes in, the bytes of an answer come out. How many.
fn service(times: usize, ask: Ask, era: Era, called: bool) -> usize {
    let Some(runtime) = runtime() else { return 0 };
    runtime.block_on(async {
        let Ok(mut http) = served::server().http() else { return 0 };
        let session = match era {
            Era::Session => open(&mut http).await,
            Era::Stateless => None,
        };
        let (body, _) = wire::body(ask, era);
        let Some(template) = post(body, &wire::headers(ask, era, session.as_deref())) else { return 0 };
        let mut bytes = 0;
        for _ in 0..times {
            let request = black_box(template.clone());
            bytes += if called { answered(&mut http, request).await } else { 1 };
        }
        assert!(bytes >= times, "each is answered");
        bytes
    })
}

/// Opens a session, and gives its id.
async fn open(http: &mut Http) -> Option<String> {
    let [open, done] = wire::handshake().map(String::into_bytes);
    let Ok(response) = http.call(post(open, &[])?).await;
    let id = response.headers().get("mcp-session-id")?.to_str().ok()?.to_owned();
    let headers = wire::headers(Ask::Echo, Era::Session, Some(&id));
    let Ok(_) = http.call(post(done, &headers)?).await;
    Some(id)
}

/// Returns a request as a client sends it; `None` if a header is none.
pub fn post(body: Vec<u8>, headers: &[(&'static str, String)]) -> Option<Request<Full>> {
    let mut request = Request::post("/mcp")
        .header("host", "127.0.0.1:8080")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("content-length", body.len());
    for (name, value) in headers {
        request = request.header(*name, value);
    }
    request.body(body.into()).ok()
}

async fn answered(http: &mut Http, request: Request<Full>) -> usize {
    let Ok(response) = http.call(request).await;
    let right = response.status() == 200;
    let mut body = pin!(response.into_body());
    let mut bytes = 0;
    while let Some(Ok(frame)) = poll_fn(|task| body.as_mut().poll_frame(task)).await {
        bytes += frame.data_ref().map_or(0, Bytes::len);
    }
    if right { bytes } else { 0 }
}

/// One request after the other on one connection. How many bytes came back.
fn socket(times: usize, ask: Ask, era: Era, bare: bool) -> usize {
    let Some(runtime) = runtime() else { return 0 };
    runtime.block_on(async {
        let Ok(listener) = TcpListener::bind("127.0.0.1:0").await else { return 0 };
        let Ok(address) = listener.local_addr() else { return 0 };
        let serving = async {
            if bare {
                limit::http::serve(listener).await;
            } else if let Ok(serving) = served::server().http().map(|http| http.at("/mcp").serve(listener)) {
                serving.ok()?.wait().await;
            }
            None::<()>
        };
        let (done, mut asked) = oneshot::channel();
        std::thread::spawn(move || done.send(ask_often(address, times, ask, era).unwrap_or(0)));
        let mut serving = pin!(serving);
        poll_fn(|task| {
            let _ = serving.as_mut().poll(task);
            Pin::new(&mut asked).poll(task).map(|bytes| bytes.unwrap_or(0))
        })
        .await
    })
}

/// Makes calls one after the other over one connection, and returns how many bytes came back.
pub(crate) fn ask_often(address: SocketAddr, times: usize, ask: Ask, era: Era) -> std::io::Result<usize> {
    let host = address.to_string();
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    // The largest answer fits.
    let mut buffer = vec![0; 2 << 20];
    let mut session = None;
    if era == Era::Session {
        for (message, answered) in wire::handshake().iter().zip([true, false]) {
            let headers = session.as_deref().map(|id| wire::headers(ask, era, Some(id))).unwrap_or_default();
            stream.write_all(wire::head(&host, message.len(), &headers).as_bytes())?;
            stream.write_all(message.as_bytes())?;
            let (head, _) = one(&mut stream, &mut buffer)?;
            let id = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
            session = session.or(id.map(str::to_owned));
            assert!(!answered || session.is_some(), "a session is opened");
        }
    }
    let mut asking = Asking::post(ask, era, &host, session.as_deref());
    let mut bytes = 0;
    // What comes back is always as long as the first one.
    stream.write_all(asking.another())?;
    let (head, length) = one(&mut stream, &mut buffer)?;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    for _ in 0..times {
        stream.write_all(asking.another())?;
        let mut came = 0;
        while came < length {
            came += some(&mut stream, &mut buffer)?;
        }
        bytes += came;
    }
    Ok(bytes)
}

/// Reads one answer: its head, and how long it is with it. The body is not looked at: it comes in another number of reads
/// each time, and what each of them cost would be counted with the server.
fn one(stream: &mut TcpStream, buffer: &mut [u8]) -> std::io::Result<(String, usize)> {
    const END: &[u8] = b"\r\n\r\n";
    let mut came = 0;
    let head = loop {
        came += some(stream, buffer.get_mut(came..).unwrap_or_default())?;
        let so_far = buffer.get(..came).unwrap_or_default();
        if let Some(end) = so_far.windows(END.len()).position(|bytes| bytes == END) {
            break String::from_utf8_lossy(so_far.get(..end).unwrap_or_default()).into_owned();
        }
    };
    let body = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let body: usize = body.and_then(|length| length.parse().ok()).unwrap_or(0);
    let length = head.len() + END.len() + body;
    while came < length {
        came += some(stream, buffer.get_mut(came..).unwrap_or_default())?;
    }
    Ok((head, length))
}

/// At least one byte, so that a server that hangs up is not waited for.
fn some(stream: &mut TcpStream, buffer: &mut [u8]) -> std::io::Result<usize> {
    match stream.read(buffer)? {
        0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
        came => Ok(came),
    }
}
