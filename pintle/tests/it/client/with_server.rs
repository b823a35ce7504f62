//! Our client and our server, in every revision: the same handlers, the same results.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use pintle::{
    Client, Connection, Error, Server, ToolQuery,
    client::{Answer, Change, Event},
    proto::Revision,
    server::{Arguments, Cx, Elicited, ToolError, tool},
    types::schema::Tool,
};
use pintle_testing::TestClient;
use serde::Deserialize;
use serde_json::json;

use crate::support::scripted_server::client;

#[derive(Deserialize, schemars::JsonSchema)]
struct Yes {
    #[allow(dead_code, reason = "the question is whether it is answered")]
    yes: bool,
}

async fn agreed(cx: &Cx, key: &str) -> Result<bool, ToolError> {
    Ok(matches!(cx.elicit::<Yes>(key, &format!("{key}?")).await?, Elicited::Accept(_)))
}

fn server(acts: Arc<AtomicUsize>) -> Server {
    let book = move |cx: Cx, Arguments(arguments): Arguments| {
        let acts = acts.clone();
        async move {
            let first = agreed(&cx, "first").await?;
            let number = cx.once("act", async { acts.fetch_add(1, Ordering::SeqCst) + 1 }).await?;
            let second = agreed(&cx, "second").await?;
            Ok::<_, ToolError>(format!("{} {first} {number} {second}", arguments.as_str()))
        }
    };
    let count = |cx: Cx| async move {
        for step in 0..50 {
            cx.progress(f64::from(step), 50.0).await;
        }
        "counted"
    };
    let boom = |cx: Cx| async move {
        assert!(cx.method().is_empty(), "this tool is broken");
        ""
    };
    Server::new("booking", "1.0.0")
        .tool(tool("book", book).description("Book."))
        .tool(tool("count", count).read_only())
        .tool(tool("boom", boom))
        .page_size(2)
        .may_change()
}

/// All but the oldest.
fn knows_annotations(revision: Revision) -> bool {
    Revision::all().last() != Some(revision)
}

async fn connect(client: &Client, server: &Server, revision: Revision) -> Connection {
    let client = client.clone().revisions([revision]);
    let connection = client.connect(server.in_process().unwrap()).await.unwrap();
    assert_eq!(connection.revision(), revision);
    connection
}

#[tokio::test(start_paused = true)]
async fn two_questions_and_an_act_between_them_in_every_revision() {
    let asker = client().on_elicit(|question| async move {
        assert!(question.message.ends_with('?'));
        Answer::accept(json!({"yes": true}))
    });
    let mut answered = 0;
    for revision in Revision::all() {
        let acts = Arc::new(AtomicUsize::new(0));
        let connection = connect(&asker, &server(acts.clone()), revision).await;
        let result = match connection.call_tool("book", json!({"to": "Oslo"})).await {
            Err(Error::Rpc(error)) if error.message.contains("did not declare") => continue,
            result => result.unwrap(),
        };
        assert_eq!(result.content[0].as_text(), Some(r#"{"to":"Oslo"} true 1 true"#));
        assert_eq!(acts.load(Ordering::SeqCst), 1);
        answered += 1;
    }
    // Two revisions have no such questions.
    assert_eq!(answered, 3);
}

#[tokio::test(start_paused = true)]
async fn lists_progress_and_panics_in_every_revision() {
    let seen_in = Mutex::new(Vec::new());
    let server = server(Arc::default());
    TestClient::new()
        .every_revision(&server, async |connection| {
        seen_in.lock().unwrap().push(connection.revision());
        let tools = connection.tools().await.unwrap();
        assert_eq!(tools.len(), 3);
        let named = connection.tools_where(|tool: &Tool| tool.name.starts_with('b')).await.unwrap();
        assert_eq!(named.len(), 2);
        let read_only = connection.tools_where(ToolQuery::new().read_only()).await.unwrap();
        assert_eq!(read_only.len(), usize::from(knows_annotations(connection.revision())));
        assert_eq!(connection.server_info().unwrap().name, "booking");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let call = connection.call("count").on_progress({
            let seen = seen.clone();
            move |progress| seen.lock().unwrap().push(progress.progress)
        });
        assert_eq!(call.send().await.unwrap().content[0].as_text(), Some("counted"));
        let seen = seen.lock().unwrap().clone();
        assert!(!seen.is_empty() && seen.is_sorted());
        assert!(
            matches!(connection.call_tool("boom", ()).await, Err(Error::Rpc(error)) if error.code.0 == -32603)
        );
        assert!(
            matches!(connection.call_tool("nope", ()).await, Err(Error::Rpc(error)) if error.code.0 == -32602)
        );
    })
    .await;
    let seen_in = seen_in.into_inner().unwrap();
    assert!(seen_in.len() == 5 && Revision::all().all(|revision| seen_in.contains(&revision)));
}

#[tokio::test(start_paused = true)]
async fn changes_are_received_in_every_revision() {
    let server = server(Arc::default());
    TestClient::new()
        .every_revision(&server, async |connection| {
            let mut changes = connection.changes().await.unwrap();
            let before = connection.tools().await.unwrap().len();
            let name = format!("new-{}", connection.revision().as_str());
            server.add_tool(tool(name, || async { "new" })).unwrap();
            assert_eq!(changes.next().await, Some(Event::Changed(Change::Tools)));
            assert_eq!(connection.tools().await.unwrap().len(), before + 1);
        })
        .await;
}
