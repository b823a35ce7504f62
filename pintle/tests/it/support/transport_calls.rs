//! The verbs of a transport as `async` functions, for tests.

use std::future::poll_fn;

use pintle::transport::{Incoming, Transport};

pub(crate) async fn send(transport: &mut impl Transport, message: &str) {
    transport.send(message.to_owned().into());
    poll_fn(|cx| transport.poll_flush(cx)).await.unwrap();
}

/// The next message, or `None` at the end.
pub(crate) async fn recv(transport: &mut impl Transport) -> Option<String> {
    match poll_fn(|cx| transport.poll_recv(cx)).await.unwrap()? {
        Incoming::Message(message) => Some(String::from_utf8(message.to_vec()).unwrap()),
        Incoming::Oversized(_) => panic!("a message was too long"),
        Incoming::Failed(failed) => panic!("{failed}"),
    }
}

/// All messages up to the end.
#[cfg(unix)]
pub(crate) async fn rest(transport: &mut impl Transport) -> Vec<String> {
    let mut messages = Vec::new();
    while let Some(message) = recv(transport).await {
        messages.push(message);
    }
    messages
}
