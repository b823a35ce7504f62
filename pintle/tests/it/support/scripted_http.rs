//! A server over HTTP that is played by the test: no sockets, so that time can be paused.

use std::{
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, request::Parts};
use http_body::Frame;
use pintle::{
    Client, Connection,
    client::http::{Body, Http},
};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

pub(crate) const URL: &str = "http://server.test/mcp";
const PATIENCE: Duration = Duration::from_secs(3600);

/// The server's side: requests in the order in which they came.
pub(crate) struct Script(mpsc::UnboundedReceiver<Asked>);

/// A request, waiting for its answer.
pub(crate) struct Asked {
    pub(crate) head: Parts,
    pub(crate) body: Bytes,
    reply: oneshot::Sender<Result<Response<ScriptedBody>, io::Error>>,
}

/// An answer that is still being said.
pub(crate) struct Saying(mpsc::UnboundedSender<Result<Bytes, io::Error>>);

pub(crate) struct ScriptedBody(mpsc::UnboundedReceiver<Result<Bytes, io::Error>>);

#[derive(Clone)]
pub(crate) struct Wired(mpsc::UnboundedSender<Asked>);

/// A script, and what leads to it.
pub(crate) fn script() -> (Script, Http) {
    let (asked, asks) = mpsc::unbounded_channel();
    (Script(asks), Http::new(URL).unwrap().client(Wired(asked)))
}

pub(crate) fn client() -> Client {
    Client::new("t", "1")
}

impl Script {
    pub(crate) async fn next(&mut self) -> Asked {
        let next = tokio::time::timeout(PATIENCE, self.0.recv()).await;
        next.expect("a request was expected and none came").expect("the client has gone")
    }

    /// The next request, whose message must be of this method.
    pub(crate) async fn receives(&mut self, method: &str) -> Asked {
        let asked = self.next().await;
        assert_eq!(asked.line(), format!("POST {URL}"));
        assert_eq!(asked.message()["method"], method, "{}", asked.text());
        asked
    }

    /// The next request, which must be this.
    pub(crate) async fn line(&mut self, line: &str) -> Asked {
        let asked = self.next().await;
        assert_eq!(asked.line(), line, "{}", asked.text());
        asked
    }

    /// Whether nothing comes for so long.
    pub(crate) async fn receives_nothing(&mut self, wait: Duration) {
        if let Ok(Some(asked)) = tokio::time::timeout(wait, self.0.recv()).await {
            panic!("{} {}", asked.line(), asked.text());
        }
    }

    /// Answers the probe of a client, and returns its connection.
    pub(crate) async fn opens(&mut self, client: Client, http: Http) -> Connection {
        let opening = tokio::spawn(async move { client.connect(http).await });
        self.receives("server/discover").await.json(
            200,
            r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],
                "capabilities":{"tools":{"listChanged":true}},"ttlMs":0,"cacheScope":"public"}}"#,
        );
        opening.await.unwrap().unwrap()
    }

    /// Shakes hands in this revision, with this session, and returns the connection. The stream of the session is
    /// still to be answered.
    pub(crate) async fn shakes(&mut self, revision: &str, client: Client, http: Http) -> Connection {
        let opening = tokio::spawn(async move { client.connect(http).await });
        self.receives("server/discover")
            .await
            .json(400, r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no session"}}"#);
        self.initializes(revision, "s-1").await;
        opening.await.unwrap().unwrap()
    }

    pub(crate) async fn initializes(&mut self, revision: &str, session: &str) {
        let hello = self.receives("initialize").await;
        assert_eq!(hello.header("mcp-session-id"), None);
        assert_eq!(hello.header("mcp-protocol-version"), None);
        let id = hello.message()["id"].clone();
        let answer = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"{revision}","capabilities":{{"tools":{{}},"logging":{{}}}},"serverInfo":{{"name":"s","version":"1"}}}}}}"#
        );
        hello.answer(200, &[("content-type", "application/json"), ("mcp-session-id", session)], &answer);
        let notified = self.receives("notifications/initialized").await;
        assert_eq!(notified.header("mcp-session-id"), Some(session));
        assert_eq!(notified.header("mcp-protocol-version"), Some(revision));
        notified.status(202);
    }
}

impl Asked {
    pub(crate) fn line(&self) -> String {
        format!("{} {}", self.head.method, self.head.uri)
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn message(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn answer(self, status: u16, headers: &[(&str, &str)], body: &str) {
        let saying = self.begins(status, headers);
        saying.sends(body);
    }

    pub(crate) fn json(self, status: u16, body: &str) {
        self.answer(status, &[("content-type", "application/json")], body);
    }

    /// Answers a request with this result; `id` and the rest are added.
    pub(crate) fn result(self, result: &str) {
        let id = self.message()["id"].clone();
        self.json(200, &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#));
    }

    pub(crate) fn status(self, status: u16) {
        self.answer(status, &[], "");
    }

    /// A stream of events.
    pub(crate) fn events(self) -> Saying {
        self.begins(200, &[("content-type", "text/event-stream")])
    }

    pub(crate) fn begins(self, status: u16, headers: &[(&str, &str)]) -> Saying {
        let (says, detail) = mpsc::unbounded_channel();
        let mut response = Response::builder().status(status);
        for (name, value) in headers {
            response = response.header(*name, *value);
        }
        // Who asked may have left.
        let _ = self.reply.send(Ok(response.body(ScriptedBody(detail)).unwrap()));
        Saying(says)
    }

    /// There is no connection.
    pub(crate) fn fails(self, kind: io::ErrorKind) {
        let _ = self.reply.send(Err(kind.into()));
    }

    /// Ready when the client does not want to know any more.
    pub(crate) async fn given_up(mut self) {
        tokio::time::timeout(PATIENCE, self.reply.closed()).await.expect("the client still waits");
    }
}

impl Saying {
    pub(crate) fn sends(&self, text: &str) {
        let _ = self.0.send(Ok(Bytes::copy_from_slice(text.as_bytes())));
    }

    pub(crate) fn breaks(self) {
        let _ = self.0.send(Err(io::ErrorKind::ConnectionReset.into()));
    }

    pub(crate) async fn given_up(self) {
        tokio::time::timeout(PATIENCE, self.0.closed()).await.expect("the client still listens");
    }
}

impl tower_service::Service<Request<Body>> for Wired {
    type Response = Response<ScriptedBody>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Response<ScriptedBody>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (head, body) = request.into_parts();
        let (reply, replied) = oneshot::channel();
        let asked = Asked { head, body: body.bytes().clone(), reply };
        let gone = self.0.send(asked).is_err();
        Box::pin(async move {
            if gone {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            replied.await.unwrap_or_else(|_| Err(io::ErrorKind::ConnectionReset.into()))
        })
    }
}

impl http_body::Body for ScriptedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.0.poll_recv(cx).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}
