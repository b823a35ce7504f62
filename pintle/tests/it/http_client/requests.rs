//! Plain requests beside the protocol.

use std::net::IpAddr;

use bytes::Bytes;
use http::Request;
use pintle::{
    Error,
    client::http::{Limits, Proxy, Requests},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

/// A server that says the same to everyone; where it is.
async fn saying(answer: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut buffer = [0; 4096];
            let read = socket.read(&mut buffer).await.unwrap();
            assert!(String::from_utf8_lossy(&buffer[..read]).contains("user-agent: pintle/"));
            socket.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    port
}

fn get(url: &str) -> Request<Bytes> {
    Request::get(url).body(Bytes::new()).unwrap()
}

#[tokio::test]
async fn an_answer_is_read_whole_whatever_its_status() {
    let port = saying("HTTP/1.1 302 Found\r\nlocation: /x\r\ncontent-length: 5\r\n\r\nhello").await;
    let requests = Requests::new().proxy(Proxy::none());
    let answer = requests.send(get(&format!("http://127.0.0.1:{port}/"))).await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.body().as_ref()), (302, b"hello".as_ref()));
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_none() {
    let port = saying("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello").await;
    let mut limits = Limits::default();
    limits.answer = Some(4);
    let requests = Requests::new().proxy(Proxy::none()).limits(limits);
    let error = requests.send(get(&format!("http://127.0.0.1:{port}/a?secret"))).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "the response is invalid: the answer of `http://127.0.0.1:{port}/a` is longer than 4 bytes: raise `Limits::answer`"
        )
    );
}

#[tokio::test]
async fn an_address_that_is_not_allowed_is_not_connected_to_by_any_name() {
    let port = saying("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let requests = Requests::new().proxy(Proxy::none()).only(|address: IpAddr| !address.is_loopback());
    for host in ["127.0.0.1", "localhost", "[::1]"] {
        let error = requests.send(get(&format!("http://{host}:{port}/"))).await.unwrap_err();
        assert!(matches!(error, Error::Io(_)), "{error:?}");
        assert!(error.to_string().contains("connections to its address are not allowed"), "{error}");
    }
    let allowed = Requests::new().proxy(Proxy::none()).only(|address: IpAddr| address.is_loopback());
    assert!(allowed.send(get(&format!("http://localhost:{port}/"))).await.is_ok());
}
