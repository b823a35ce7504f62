//! Connections come and go, and somebody keeps count.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use pintle::{
    Ended, Server, ToolQuery,
    server::{Caller, Opened, tool},
    transport::memory,
    types::RpcError,
};
use serde_json::json;

use crate::support::{
    eras::{ALL, Client, R5},
    line_client::Raw,
};

#[tokio::test]
async fn hooks_observe_the_start_and_end_of_every_connection() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let note = |what: &'static str| {
        let seen = seen.clone();
        move |text: String| seen.lock().unwrap().push(format!("{what} {text}"))
    };
    let (open, session, close) = (note("open"), note("session"), note("close"));
    let server = Server::new("s", "0")
        .tool(tool("t", || async { "fine" }))
        .on_open(move |opened| open(opened.principal().unwrap_or("?").to_owned()))
        .on_open(|opened: &Opened| match opened.server.tools_where(ToolQuery::new()).len() {
            1 => Ok(()),
            _ => Err(RpcError::internal("it is another server")),
        })
        .on_open(|_| -> () { panic!("harms nobody") })
        .on_session(move |opened| session(opened.session.as_ref().unwrap().revision.as_str().to_owned()))
        .on_close(move |opened, ended| close(format!("{} {ended:?}", opened.session.is_some())));
    for revision in ALL {
        let (ours, theirs) = memory();
        let serving = server.serve_to(ours, Caller::new().principal(revision)).unwrap();
        let mut client = Client::over(Raw::over(theirs), revision, json!({})).await;
        assert_eq!(client.tool("t").await, "fine");
        drop(client);
        serving.wait().await.unwrap();
        let mut expected = vec![format!("open {revision}")];
        if revision != R5 {
            expected.push(format!("session {revision}"));
        }
        expected.push(format!("close {} Some(ByPeer {{ known: None }})", revision != R5));
        assert_eq!(std::mem::take(&mut *seen.lock().unwrap()), expected);
    }
    let (ours, _theirs) = memory();
    let serving = server.serve(ours).unwrap();
    serving.close(Duration::ZERO).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), ["open ?", "close false Some(Stopped)"]);
}

#[tokio::test]
async fn a_refused_connection_is_closed_after_the_answer() {
    let server = Server::new("s", "0").on_open(|opened: &Opened| {
        assert_eq!(opened.server.sessions().len(), 0);
        Err(RpcError::invalid_request("closed on Mondays"))
    });
    let (ours, theirs) = memory();
    let serving = server.serve(theirs).unwrap();
    let mut raw = Raw::over(ours);
    // A handshake of an older revision may follow the probe, and gets the reason too.
    for method in ["server/discover", "initialize"] {
        raw.request(method, json!({})).await;
        assert_eq!(raw.recv().await["error"]["message"], "closed on Mondays");
    }
    assert_eq!(serving.wait().await.unwrap(), Ended::Stopped);
}
