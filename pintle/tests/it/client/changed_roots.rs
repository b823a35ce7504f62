//! Changed roots: a handler fetches the new ones, on every transport with sessions.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use pintle::{
    Connection, Server,
    client::{self, Roots},
    server::{Cx, Next, SessionError, around},
};
use tokio::{
    net::TcpListener,
    sync::{Semaphore, mpsc},
};

use crate::support::{
    eras::{HTTP_SESSIONS, R1, R4},
    http_server::{client, remote, soon},
};

/// A server that writes down the roots of a client whenever they change.
fn server() -> (Server, mpsc::UnboundedReceiver<Result<Vec<String>, SessionError>>) {
    let (found, roots) = mpsc::unbounded_channel();
    let found = Arc::new(found);
    let server = Server::new("s", "0").on_roots_changed(move |session| {
        let found = found.clone();
        async move {
            assert_eq!(session.server().unwrap().sessions().len(), 1);
            let roots = session.roots().await;
            let uris = roots.map(|roots| roots.into_iter().map(|root| root.uri).collect());
            found.send(uris).unwrap();
        }
    });
    (server, roots)
}

async fn connect(client: &pintle::Client, server: &Server, http: bool, revision: &str) -> Connection {
    if !http {
        return client.connect(server.in_process().unwrap()).await.unwrap();
    }
    let serving = server.http().unwrap().two_endpoints("/sse", "/messages");
    let serving = serving.serve(TcpListener::bind("127.0.0.1:0").await.unwrap()).unwrap();
    let address = serving.address();
    // It serves until the runtime ends.
    std::mem::forget(serving);
    client.connect(remote(revision, address)).await.unwrap()
}

#[tokio::test]
async fn the_handler_of_changed_roots_fetches_them() {
    for layered in [false, true] {
        for http in [false, true] {
            for revision in HTTP_SESSIONS.into_iter().chain([R1]) {
                let (server, mut found) = server();
                let server = match layered {
                    true => server.layer(&around(|cx: Cx, next: Next| next.run(cx))),
                    false => server,
                };
                let roots = Roots::new(["file:///a"]).unwrap();
                let client = client(revision, "c").roots(&roots);
                let client = match layered {
                    true => client.layer(&client::around(|cx: client::Cx, next: client::Next| next.run(cx))),
                    false => client,
                };
                let connection = soon(connect(&client, &server, http, revision)).await;
                // Over HTTP the server asks on the stream that the client opens after the handshake.
                loop {
                    roots.set(["file:///b"]).unwrap();
                    match soon(found.recv()).await.unwrap() {
                        Err(SessionError::NoStream) => roots.set(["file:///a"]).unwrap(),
                        uris => {
                            break assert_eq!(uris, Ok(vec!["file:///b".to_owned()]), "{http} {revision}");
                        }
                    }
                }
                connection.close().await;
            }
        }
    }
}

#[tokio::test]
async fn a_client_without_roots_is_not_asked_for_them() {
    let (server, _found) = server();
    let connection = soon(connect(&client(R4, "c"), &server, false, R4)).await;
    let session = server.sessions().remove(0);
    let error = session.roots().await.unwrap_err();
    assert_eq!(error, SessionError::Unsupported { capability: "roots" });
    // A client with the same settings.
    let again = connection.client();
    let another = soon(connect(&again, &server, false, R4)).await;
    assert_eq!(another.revision().to_string(), R4);
    connection.close().await;
    assert!(session.is_closed() && session.server().is_none());
}

/// A layer that waits keeps one task, not one for each change; the last change is sent.
#[tokio::test]
async fn changes_of_roots_are_merged_while_a_layer_holds_one_back() {
    let (server, mut found) = server();
    let entered = Arc::new(AtomicUsize::new(0));
    let gate = Arc::new(Semaphore::new(0));
    let (count, held) = (entered.clone(), gate.clone());
    let roots = Roots::new(["file:///0"]).unwrap();
    let client =
        client(R4, "c").roots(&roots).layer(&client::around(move |cx: client::Cx, next: client::Next| {
            let (count, held) = (count.clone(), held.clone());
            async move {
                if cx.method() == "notifications/roots/list_changed" {
                    count.fetch_add(1, Ordering::SeqCst);
                    held.acquire().await.unwrap().forget();
                }
                next.run(cx).await
            }
        }));
    let connection = client.connect(server.in_process().unwrap()).await.unwrap();
    for n in 1..=100 {
        roots.set([format!("file:///{n}")]).unwrap();
        // The driver notices each change.
        for _ in 0..5 {
            tokio::task::yield_now().await;
        }
    }
    connection.ping().await.unwrap();
    assert_eq!(entered.load(Ordering::SeqCst), 1);
    gate.add_permits(1);
    assert_eq!(soon(found.recv()).await.unwrap(), Ok(vec!["file:///100".to_owned()]));
    gate.add_permits(1);
    assert_eq!(soon(found.recv()).await.unwrap(), Ok(vec!["file:///100".to_owned()]));
    assert_eq!(entered.load(Ordering::SeqCst), 2);
    // And later ones.
    gate.add_permits(1);
    roots.set(["file:///101"]).unwrap();
    assert_eq!(soon(found.recv()).await.unwrap(), Ok(vec!["file:///101".to_owned()]));
}
