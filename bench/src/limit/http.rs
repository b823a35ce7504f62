//! The limit over HTTP: bare hyper.

use std::{
    collections::{HashMap, HashSet},
    convert::Infallible,
    future::poll_fn,
    pin::pin,
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::{Bytes, BytesMut};
use http::{HeaderValue, Method, Request, Response, StatusCode, header::CONTENT_TYPE};
use http_body::Body as _;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpListener, sync::oneshot};

use super::{Answer, Limit, RequestHeaders, body::Reply, call_id, called, question};
use crate::full::Full;

/// Serves on a port of its own, which it says in one line, for ever.
///
/// # Errors
///
/// There is none.
#[expect(clippy::print_stdout, reason = "a program that is started by another")]
pub fn run() -> std::io::Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        serve(listener).await;
        Ok(())
    })
}

/// Serves what comes in here, for ever.
pub async fn serve(listener: TcpListener) {
    let app = Arc::new(App::default());
    loop {
        let Ok((socket, _)) = listener.accept().await else { continue };
        let _ = socket.set_nodelay(true);
        let app = app.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(app.clone(), request));
            let _ = http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
        });
    }
}

#[derive(Default)]
struct App {
    limit: Limit,
    sessions: RwLock<HashSet<Box<str>>>,
    last: AtomicU64,
    /// The calls that wait for the answer to a question.
    asked: Mutex<HashMap<u64, (String, oneshot::Sender<Bytes>)>>,
}

async fn answer(app: Arc<App>, request: Request<Incoming>) -> Result<Response<Reply>, Infallible> {
    let (head, body) = request.into_parts();
    if head.method != Method::POST {
        return Ok(bare(StatusCode::METHOD_NOT_ALLOWED));
    }
    let Some(body) = whole(body).await else { return Ok(bare(StatusCode::BAD_REQUEST)) };
    let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(session) = header("mcp-session-id")
        && !app.sessions.read().unwrap_or_else(PoisonError::into_inner).contains(session)
    {
        return Ok(bare(StatusCode::NOT_FOUND));
    }
    let headers = RequestHeaders {
        method: header("mcp-method"),
        name: header("mcp-name"),
        version: header("mcp-protocol-version"),
    };
    let mut out = Vec::with_capacity(body.len() + 256);
    Ok(match app.limit.answer(&body, Some(&headers), &mut out) {
        Answer::Nothing => bare(StatusCode::ACCEPTED),
        Answer::Bad => bare(StatusCode::BAD_REQUEST),
        Answer::Reply => json(out),
        Answer::Lines => stream(Reply::Whole(Full(Some(events(&out))))),
        Answer::Asked(question) => {
            let (tell, rest) = oneshot::channel();
            app.asked().insert(question, (call_id(&body), tell));
            stream(Reply::Asking { question: Some(events(&out)), rest: Some(rest) })
        }
        Answer::Answered(question, yes) => {
            let asked = app.asked().remove(&question);
            let Some((call, tell)) = asked else { return Ok(bare(StatusCode::BAD_REQUEST)) };
            called(&mut out, &call, false, question::word(yes));
            // Who asked may have hung up.
            let _ = tell.send(events(&out));
            bare(StatusCode::ACCEPTED)
        }
        Answer::Opened => {
            let id = format!("{:032x}", app.last.fetch_add(1, Ordering::Relaxed));
            let mut response = json(out);
            if let Ok(value) = HeaderValue::try_from(&id) {
                response.headers_mut().insert("mcp-session-id", value);
            }
            app.sessions.write().unwrap_or_else(PoisonError::into_inner).insert(id.into());
            response
        }
    })
}

impl App {
    fn asked(&self) -> std::sync::MutexGuard<'_, HashMap<u64, (String, oneshot::Sender<Bytes>)>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bare(status: StatusCode) -> Response<Reply> {
    let mut response = Response::new(Reply::Whole(Full(None)));
    *response.status_mut() = status;
    response
}

fn json(bytes: Vec<u8>) -> Response<Reply> {
    typed("application/json", Reply::Whole(Full(Some(bytes.into()))))
}

fn stream(body: Reply) -> Response<Reply> {
    typed("text/event-stream", body)
}

fn typed(kind: &'static str, body: Reply) -> Response<Reply> {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Each line as an event.
fn events(lines: &[u8]) -> Bytes {
    let mut events = Vec::with_capacity(lines.len() + 128);
    for line in lines.split(|byte| *byte == b'\n') {
        events.extend_from_slice(b"data: ");
        events.extend_from_slice(line);
        events.extend_from_slice(b"\n\n");
    }
    events.into()
}

/// A body in one piece, without a copy if it comes so.
async fn whole(body: Incoming) -> Option<Bytes> {
    let mut body = pin!(body);
    let (mut first, mut joined) = (Bytes::new(), BytesMut::new());
    while let Some(frame) = poll_fn(|task| body.as_mut().poll_frame(task)).await {
        let Ok(data) = frame.ok()?.into_data() else { continue };
        if first.is_empty() {
            first = data;
        } else {
            joined.extend_from_slice(&data);
        }
    }
    Some(if joined.is_empty() { first } else { [first, joined.freeze()].concat().into() })
}
