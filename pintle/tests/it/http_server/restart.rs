//! A server that is started anew under its clients.

use std::time::Duration;

use pintle::{
    Error,
    client::{Change, Event},
    types::schema::CallToolResult,
};
use serde_json::json;
use tokio::{net::TcpListener, sync::mpsc, task::JoinHandle};

use crate::support::{
    eras::{ALL, R1, R5},
    http_server::{World, connect, marked, soon},
};

/// A call that ran when the server went is told so, if there was still time for it.
async fn lost(revision: &str, running: JoinHandle<pintle::Result<CallToolResult>>) {
    match soon(running).await.unwrap().unwrap_err() {
        Error::Failed(_) | Error::Closed(_) => {}
        Error::Rpc(error) => assert!(error.message.contains("shutting down"), "{revision}: {error:?}"),
        other => panic!("{revision}: {other:?}"),
    }
}

#[tokio::test]
async fn a_client_of_any_revision_goes_on() {
    for revision in ALL {
        let first = World::new();
        let serving = first.serve().await;
        let address = serving.address();
        let connection = connect(revision, "c", address).await;
        let mut changes = soon(connection.changes()).await.unwrap();
        soon(connection.subscribe("note://c")).await.unwrap();
        assert_eq!(soon(marked(&connection, "echo", "before")).await.unwrap(), "before");

        // This one runs when the server goes: nobody can say what became of it, and it is not sent again.
        let (began, mut begun) = mpsc::unbounded_channel();
        let running = tokio::spawn({
            let connection = connection.clone();
            async move {
                let call = connection.call("hold").args(json!({"mark": "running"}));
                call.on_progress(move |_| began.send(()).unwrap()).send().await
            }
        });
        soon(begun.recv()).await.unwrap();
        serving.shutdown(Duration::ZERO).await;
        drop(first);

        let second = World::new();
        let serving = second.serve_on(TcpListener::bind(address).await.unwrap());
        let mut running = Some(running);
        if revision == R1 {
            // Here the stream is the connection, and what is called before its end is seen would be lost with it.
            lost(revision, running.take().unwrap()).await;
        }
        // The first call finds that out. If it was not taken, it is sent again; that is once in all.
        let came = soon(marked(&connection, "echo", "after")).await;
        assert_eq!(came.unwrap(), "after", "{revision}");
        assert_eq!(*second.called.lock().unwrap(), ["after"], "{revision}");
        if let Some(running) = running {
            lost(revision, running).await;
        }

        // What was wished for holds: it is asked for again, without a word from here.
        let notified = async {
            loop {
                if let Some(Event::Changed(Change::Resource(uri))) = changes.next().await {
                    break uri;
                }
            }
        };
        let touched = async {
            loop {
                second.server.resource_updated("note://c");
                tokio::task::yield_now().await;
            }
        };
        let uri = soon(async {
            tokio::select! {
                uri = notified => uri,
                () = touched => unreachable!(),
            }
        })
        .await;
        assert_eq!(&*uri, "note://c");
        assert_eq!(second.http.sessions(), usize::from(revision != R5), "it was opened again, once");
        soon(connection.close()).await;
        second.empty().await;
        serving.shutdown(Duration::from_secs(20)).await;
    }
}

#[tokio::test]
async fn a_call_while_there_is_no_server_fails_and_the_next_one_does_not() {
    for revision in ALL {
        let first = World::new();
        let serving = first.serve().await;
        let address = serving.address();
        let connection = connect(revision, "c", address).await;
        serving.shutdown(Duration::ZERO).await;
        let error = soon(marked(&connection, "echo", "nobody")).await.unwrap_err();
        assert!(matches!(error, Error::Failed(_) | Error::Closed(_)), "{revision}: {error:?}");

        let second = World::new();
        let serving = second.serve_on(TcpListener::bind(address).await.unwrap());
        let came = soon(marked(&connection, "echo", "after")).await;
        match revision {
            // Here the stream is the connection. It was opened again as often as a client does; then it is over.
            R1 => assert!(came.unwrap_err().to_string().ends_with("/sse`: its stream ended")),
            _ => assert_eq!(came.unwrap(), "after", "{revision}"),
        }
        soon(connection.close()).await;
        second.empty().await;
        serving.shutdown(Duration::from_secs(20)).await;
    }
}
