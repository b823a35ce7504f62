//! The parts of HTTP in somebody else's framework, and somebody else's framework in ours.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::{Extension, Router};
use http::{Request, Response};
use http_body::Body;
use pintle::{
    proto::http::Guard,
    server::http::{Cors, HttpServer, Patience, PeerAddress, Unread, read_body},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, ToSocketAddrs},
    time::timeout,
};
use tower_service::Service;

/// Who is calling, as a layer of the application found out.
#[derive(Clone)]
struct User(&'static str);

/// Says who sent what, if it is not too long.
#[derive(Clone)]
struct Echo;

impl<B> Service<Request<B>> for Echo
where
    B: Body + Send + 'static,
    B::Data: Send,
{
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<String>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let user = head.extensions.get::<User>().map_or("nobody", |user| user.0);
            let known = head.extensions.get::<PeerAddress>().map_or("", |_| ", from somewhere");
            let mut patience = Patience::default();
            patience.limit = 10;
            Ok(match read_body(body, &patience).await {
                Ok(body) => Response::new(format!("{user}: {}{known}", String::from_utf8_lossy(&body))),
                Err(Unread::Refused(refusal)) => {
                    Response::builder().status(refusal.status).body(refusal.body(None)).unwrap()
                }
                Err(Unread::Broken) => Response::new(String::new()),
            })
        })
    }
}

fn app() -> Router {
    Router::new()
        .route_service("/mcp", Echo)
        .layer(Extension(User("ann")))
        .layer(Cors::new(Guard::loopback().origins(["https://app.example.com"])))
}

/// Sends a request on a connection of its own; gives the status line and all that is left of the answer.
async fn send(address: impl ToSocketAddrs, head: &str, body: &str) -> (String, String) {
    let mut client = TcpStream::connect(address).await.unwrap();
    let fields = format!("host: localhost\r\nconnection: close\r\ncontent-length: {}", body.len());
    client.write_all(format!("{head}\r\n{fields}\r\n\r\n{body}").as_bytes()).await.unwrap();
    let mut answer = String::new();
    let read = timeout(Duration::from_secs(20), client.read_to_string(&mut answer));
    read.await.expect("it hangs").unwrap();
    let (status, rest) = answer.split_once("\r\n").unwrap();
    (status.to_owned(), rest.to_owned())
}

#[tokio::test]
async fn in_axum() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move { axum::serve(listener, app()).await });

    let (status, rest) = send(address, "POST /mcp HTTP/1.1", "hello").await;
    assert_eq!(status, "HTTP/1.1 200 OK");
    assert!(rest.ends_with("\r\n\r\nann: hello"), "{rest}");
    let (status, rest) = send(address, "POST /mcp HTTP/1.1", "hello, hello").await;
    assert_eq!(status, "HTTP/1.1 413 Payload Too Large");
    assert!(rest.contains("the body is larger than 10 bytes; send less"), "{rest}");
    let asks =
        "OPTIONS /mcp HTTP/1.1\r\norigin: https://app.example.com\r\naccess-control-request-method: POST";
    let (status, rest) = send(address, asks, "").await;
    assert_eq!(status, "HTTP/1.1 204 No Content");
    assert!(rest.contains("access-control-allow-origin: https://app.example.com\r\n"), "{rest}");
    serving.abort();
}

#[tokio::test]
async fn axum_in_our_server() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let serving = HttpServer::new(app()).serve(listener).unwrap();
    let (status, rest) = send(serving.address(), "POST /mcp HTTP/1.1", "hello").await;
    assert_eq!(status, "HTTP/1.1 200 OK");
    assert!(rest.ends_with("\r\n\r\nann: hello, from somewhere"), "{rest}");
    let (status, _) = send(serving.address(), "GET /other HTTP/1.1", "").await;
    assert_eq!(status, "HTTP/1.1 404 Not Found");
    assert_eq!(serving.shutdown(Duration::from_secs(20)).await.aborted, 0);
}
