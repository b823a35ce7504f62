//! A process that was taken for gone: what becomes of the questions that its calls have asked.

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use pintle::{
    Server, Timeouts,
    server::{
        Cx, ToolError,
        http::{
            Http,
            log::EventLog,
            nodes::{MemoryFleet, MemoryNodes, NodeEvent, NodeId, Nodes, SharedStore},
        },
        store::{Store, Stored},
        tool,
    },
    types::schema::{ContentBlock, CreateMessageParams, Role, SamplingMessage},
};
use pintle_tasks::Tasks;
use serde_json::{Value, json};
use tokio::{
    sync::{Notify, Semaphore},
    time::timeout,
};

use crate::support::{
    eras::R4,
    http_client::{Answer, Wire},
};

/// Far more than anything here takes, under a paused clock.
const SOON: Duration = Duration::from_secs(60);

/// A process that can be taken for gone by the others.
#[derive(Clone, Debug)]
struct Silent(Arc<SilentState>);

#[derive(Debug)]
struct SilentState {
    inner: MemoryNodes,
    /// Notified when the process finds that it was taken for gone.
    found_out: Notify,
    /// One for each time that the process may join those that have a session.
    joins: Semaphore,
}

impl Silent {
    fn new(fleet: &MemoryFleet) -> Self {
        let (found_out, joins) = (Notify::new(), Semaphore::new(1000));
        Self(Arc::new(SilentState { inner: fleet.node().unwrap(), found_out, joins }))
    }

    /// Has the others take the process for gone. It may not join those that have the session until there are permits.
    async fn is_taken_for_gone(&self, session: &str) {
        self.0.inner.nodes().leave(session).await.unwrap();
        self.0.joins.forget_permits(1000);
        self.0.found_out.notify_one();
    }
}

impl SharedStore for Silent {
    fn store(&self) -> Arc<dyn Store> {
        self.0.inner.store()
    }

    fn event_log(&self) -> Arc<dyn EventLog> {
        self.0.inner.event_log()
    }

    fn nodes(&self) -> Arc<dyn Nodes> {
        Arc::new(self.clone())
    }
}

impl Nodes for Silent {
    fn id(&self) -> NodeId {
        self.0.inner.id()
    }

    fn join<'a>(&'a self, session: &'a str, idle: Duration) -> Stored<'a, ()> {
        Stored::later(async move {
            self.0.joins.acquire().await.map_err(io::Error::other)?.forget();
            self.0.inner.join(session, idle).await
        })
    }

    fn leave<'a>(&'a self, session: &'a str) -> Stored<'a, ()> {
        self.0.inner.leave(session)
    }

    fn send<'a>(&'a self, session: &'a str, message: Bytes) -> Stored<'a, usize> {
        self.0.inner.send(session, message)
    }

    fn send_to<'a>(&'a self, node: NodeId, message: Bytes) -> Stored<'a, bool> {
        self.0.inner.send_to(node, message)
    }

    fn publish<'a>(&'a self, change: Bytes) -> Stored<'a, ()> {
        self.0.inner.publish(change)
    }

    fn receive(&self) -> Stored<'_, NodeEvent> {
        Stored::later(async move {
            tokio::select! {
                () = self.0.found_out.notified() => Ok(NodeEvent::Gap),
                received = self.0.inner.receive() => received,
            }
        })
    }
}

/// A server with a tool that asks when it may.
fn asking(go: &Arc<Semaphore>) -> Server {
    let go = go.clone();
    let ask = tool("ask", move |cx: Cx| {
        let go = go.clone();
        async move {
            cx.progress(1.0, None).await;
            go.acquire().await.unwrap().forget();
            let question = SamplingMessage::new(Role::User, ContentBlock::text("why?"));
            Ok::<_, ToolError>(cx.sample("why", CreateMessageParams::new(vec![question], 10)).await?.text())
        }
    });
    Server::new("s", "0").with(Tasks::new()).tool(ask.task("optional"))
}

/// Two processes: the first one can be taken for gone.
fn fleet(go: &Arc<Semaphore>) -> (Silent, Http, Http) {
    let fleet = MemoryFleet::new();
    let (server, silent) = (asking(go), Silent::new(&fleet));
    let a = server.http().unwrap().shared(silent.clone());
    let b = server.http().unwrap().shared(fleet.node().unwrap());
    (silent, a, b)
}

/// Opens a session, and returns its id too.
async fn opened(http: &Http) -> (Wire, String) {
    let client = Wire::new(http).open(R4, json!({"sampling": {}})).await;
    let session = client.request("GET", "/", "").headers()["mcp-session-id"].to_str().unwrap().to_owned();
    (client, session)
}

async fn next(call: &mut Answer) -> Value {
    timeout(SOON, call.message()).await.expect("the call does not end").expect("a message")
}

/// Answers a question at another process.
async fn answer(client: &Wire, http: &Http, question: &Value, text: &str) {
    assert_eq!(question["method"], "sampling/createMessage", "{question}");
    let result = json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": text}});
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": result});
    let client = Wire { http: http.clone(), ..client.clone() };
    assert_eq!(client.post(answer).await.status, 202);
}

#[tokio::test(start_paused = true)]
async fn an_answer_reaches_a_process_that_was_taken_for_gone_and_a_lost_one_ends_the_call() {
    for is_sent in [true, false] {
        let go = Arc::new(Semaphore::new(0));
        let (silent, a, b) = fleet(&go);
        let (client, session) = opened(&a).await;
        let params = json!({"name": "ask", "_meta": {"progressToken": "p"}});
        let mut call = client.call(7, "tools/call", params).await;
        assert_eq!(next(&mut call).await["params"]["progress"], 1.0);
        // The process has found out, and the others have not heard of it yet.
        silent.is_taken_for_gone(&session).await;
        assert!(timeout(Duration::from_secs(1), call.message()).await.is_err());
        go.add_permits(1);
        let question = next(&mut call).await;
        if is_sent {
            // The question says who asked.
            answer(&client, &b, &question, "because").await;
            let ended = next(&mut call).await;
            assert_eq!(ended["result"]["content"][0]["text"], "because", "{ended}");
            continue;
        }
        silent.0.joins.add_permits(1000);
        let ended = next(&mut call).await;
        let reason = ended["error"]["message"].as_str().unwrap_or_default();
        assert!(reason.starts_with("the answer may have been lost"), "{ended}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_asks_again_if_the_answer_may_have_been_lost() {
    let go = Arc::new(Semaphore::new(1));
    let (silent, a, b) = fleet(&go);
    let (client, session) = opened(&a).await;
    let created = client.call(7, "tools/call", json!({"name": "ask", "task": {}})).await.json().await;
    let id = created["result"]["task"]["taskId"].clone();
    let mut result = client.call(8, "tasks/result", json!({"taskId": id})).await;
    // Its answer is lost.
    next(&mut result).await;
    silent.is_taken_for_gone(&session).await;
    silent.0.joins.add_permits(1000);
    let ended = loop {
        let message = next(&mut result).await;
        match message.get("method") {
            Some(_) => answer(&client, &b, &message, "because").await,
            None => break message,
        }
    };
    assert_eq!(ended["result"]["content"][0]["text"], "because", "{ended}");
}

#[tokio::test(start_paused = true)]
async fn the_others_are_notified_of_a_session_again_before_they_forget_it_and_not_with_every_request() {
    let (fleet, idle) = (MemoryFleet::new(), Duration::from_secs(400));
    let silent = Silent::new(&fleet);
    let mut timeouts = Timeouts::default();
    timeouts.idle_session = idle;
    let server = Server::new("s", "0").timeouts(timeouts);
    let http = server.http().unwrap().shared(silent.clone());
    let (client, _) = opened(&http).await;
    let ping = async || assert_eq!(client.call(1, "ping", json!({})).await.status, 200);
    let before = silent.0.joins.available_permits();
    for times in 0..4 {
        for _ in 0..10 {
            ping().await;
        }
        assert_eq!(before - silent.0.joins.available_permits(), times);
        tokio::time::sleep(idle / 4).await;
    }
}
