//! Tasks that a client runs: a server of 2025-11-25 asks for an answer as a task, and polls for it.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use pintle::transport::Stderr;
use pintle::{
    Client, Server,
    client::{Answer, AnswerTasks, Cx as ClientCx, Next, around},
    server::{Cx, ToolError, tool},
    types::schema::{ContentBlock, CreateMessageResult},
};
use pintle_testing::Peer;
use serde_json::{Value, json};

use crate::support::over::TRANSPORTS;
use crate::support::{
    consulting_server::{server, thought},
    eras::{self, R3, R4, R5},
    scripted_server::{open, settle},
};

/// The methods of the messages that a client got and sent of itself.
type Seen = Arc<Mutex<Vec<String>>>;

fn client(revision: &str, seen: &Seen) -> Client {
    let seen = seen.clone();
    Client::new("c", "0")
        .revisions([revision.parse().unwrap()])
        .on_elicit(|_| async { Answer::accept(json!({"name": "Ann"})) })
        .on_sample(|_| async { CreateMessageResult::new("m", ContentBlock::text("hm")) })
        .layer(&around(move |cx: ClientCx, next: Next| {
            seen.lock().unwrap().push(cx.method().to_owned());
            next.run(cx)
        }))
}

#[tokio::test]
async fn a_server_gets_its_answers_as_tasks_where_the_client_runs_them_and_plainly_elsewhere() {
    for over in TRANSPORTS {
        for (revision, runs) in [(R3, true), (R4, false), (R4, true), (R5, true)] {
            let (seen, shown) = (Seen::default(), format!("{over:?} {revision} {runs}"));
            let client = client(revision, &seen);
            let client = match runs {
                true => client.answer_tasks(AnswerTasks::new().poll_interval(Duration::from_millis(10))),
                false => client,
            };
            let connection = over.connect(&client, &server(), revision).await.unwrap();
            let result = connection.call_tool("consult", ()).await.unwrap();
            assert_eq!(result.text(), "Ann: hm", "{shown}");
            let methods: HashSet<String> = seen.lock().unwrap().iter().cloned().collect();
            let as_tasks = revision == R4 && runs;
            for method in ["tasks/get", "tasks/result", "notifications/tasks/status"] {
                assert_eq!(methods.contains(method), as_tasks, "{shown}: {methods:?}");
            }
        }
    }
}

/// The server is another process, and the answers of the client are tasks that it polls over its standard streams.
#[tokio::test]
async fn a_server_on_standard_streams_gets_its_answers_as_tasks() {
    let seen = Seen::default();
    let client = client(R4, &seen);
    let client = client.answer_tasks(AnswerTasks::new().poll_interval(Duration::from_millis(10)));
    let child = crate::support::child_servers::command("consult").stderr(Stderr::lines(|_| {}));
    let connection = client.connect(child.spawn().unwrap()).await.unwrap();
    assert_eq!(connection.call_tool("consult", ()).await.unwrap().text(), "Ann: hm");
    let seen = seen.lock().unwrap().clone();
    for question in ["elicitation/create", "sampling/createMessage"] {
        assert_eq!(seen.iter().filter(|method| *method == question).count(), 1, "{seen:?}");
    }
    // Each answer was fetched once, and polled for.
    assert_eq!(seen.iter().filter(|method| *method == "tasks/result").count(), 2, "{seen:?}");
    assert!(seen.iter().filter(|method| *method == "tasks/get").count() >= 2, "{seen:?}");
    connection.close().await;
}

/// A client whose answers take a minute, and how many were dropped before they were given.
fn slow(tasks: AnswerTasks) -> (Client, Arc<AtomicUsize>) {
    /// Counts answers that were not given.
    struct Pending(Arc<AtomicUsize>);
    impl Pending {
        fn given(self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
    impl Drop for Pending {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let dropped = Arc::new(AtomicUsize::new(0));
    let counted = dropped.clone();
    let client = Client::new("c", "0").answer_tasks(tasks).on_sample(move |question| {
        let pending = Pending(counted.clone());
        async move {
            question.progress(0.5, None).await;
            tokio::time::sleep(Duration::from_secs(60)).await;
            pending.given();
            CreateMessageResult::new("m", ContentBlock::text("hm"))
        }
    });
    (client, dropped)
}

fn sampling() -> Value {
    json!({"messages": [{"role": "user", "content": {"type": "text", "text": "Think."}}], "maxTokens": 10,
        "task": {}})
}

/// Sends a request, and returns the client's response to it.
async fn ask(peer: &mut Peer, method: &str, params: Value) -> Value {
    static LAST: AtomicUsize = AtomicUsize::new(1000);
    let id = LAST.fetch_add(1, Ordering::SeqCst);
    peer.asks(u32::try_from(id).unwrap(), method, params).await;
    let answer = peer.next().await.unwrap();
    assert_eq!(answer["id"], id, "{answer}");
    answer
}

/// A notification and a response, in whichever order they come.
async fn two(peer: &mut Peer) -> [Value; 2] {
    let mut messages = [peer.next().await.unwrap(), peer.next().await.unwrap()];
    messages.sort_by_key(|message| message.get("id").is_some());
    messages
}

#[tokio::test(start_paused = true)]
async fn a_client_replies_at_once_and_serves_the_task_until_it_expires() {
    let (client, _) = slow(AnswerTasks::new());
    let (_connection, mut peer) = open(&client, R4, json!({})).await;
    let mut question = sampling();
    question["task"] = json!({"ttl": 100_000});
    question["_meta"] = json!({"progressToken": 7});
    peer.asks(1, "sampling/createMessage", question).await;
    let notified = two(&mut peer).await;
    let task = notified[1]["result"]["task"].clone();
    assert_eq!((&task["status"], &task["ttl"]), (&json!("working"), &json!(100_000)), "{task}");
    let id = &task["taskId"];
    let about = json!({"taskId": id});
    // Progress has the token of the question.
    assert_eq!(notified[0]["method"], "notifications/progress");
    assert_eq!(notified[0]["params"]["progressToken"], 7, "{notified:?}");
    let polled = ask(&mut peer, "tasks/get", about.clone()).await;
    assert_eq!((&polled["result"]["taskId"], &polled["result"]["status"]), (id, &json!("working")));
    let listed = ask(&mut peer, "tasks/list", json!({})).await;
    assert_eq!(listed["result"]["tasks"][0]["taskId"], *id, "{listed}");

    // The request for the result waits until it is there.
    peer.asks(2, "tasks/result", about.clone()).await;
    let notified = two(&mut peer).await;
    assert_eq!(notified[0]["method"], "notifications/tasks/status");
    assert_eq!(
        (&notified[0]["params"]["status"], &notified[0]["params"]["taskId"]),
        (&json!("completed"), id)
    );
    let result = &notified[1]["result"];
    assert_eq!(result["content"]["text"], "hm", "{result}");
    assert_eq!(result["_meta"]["io.modelcontextprotocol/related-task"], about, "{result}");

    // It has ended: what is to be had stays, until its time is over.
    assert_eq!(ask(&mut peer, "tasks/cancel", about.clone()).await["error"]["code"], -32602);
    assert_eq!(ask(&mut peer, "tasks/get", about.clone()).await["result"]["status"], "completed");
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(ask(&mut peer, "tasks/get", about.clone()).await["error"]["code"], -32602);
    assert_eq!(ask(&mut peer, "tasks/list", json!({})).await["result"]["tasks"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_or_expired_answer_is_dropped_and_who_waits_is_notified() {
    let (client, dropped) = slow(AnswerTasks::new().ttl(Duration::from_secs(20)));
    let (connection, mut peer) = open(&client, R4, json!({})).await;
    let start = async |peer: &mut Peer| {
        let reply = ask(peer, "sampling/createMessage", sampling()).await;
        json!({"taskId": reply["result"]["task"]["taskId"]})
    };
    let about = start(&mut peer).await;
    peer.asks(1, "tasks/result", about.clone()).await;
    settle().await;
    peer.asks(2, "tasks/cancel", about.clone()).await;
    let mut replies = [peer.next().await.unwrap(), peer.next().await.unwrap()];
    replies.sort_by_key(|reply| reply["id"].as_u64());
    assert_eq!(replies[0]["error"]["code"], -32602, "{replies:?}");
    assert_eq!(replies[1]["result"]["status"], "cancelled", "{replies:?}");
    settle().await;
    assert_eq!(dropped.load(Ordering::SeqCst), 1, "the handler of a cancelled task goes on");

    let about = start(&mut peer).await;
    peer.asks(3, "tasks/result", about).await;
    let notified = two(&mut peer).await;
    assert_eq!(notified[0]["params"]["status"], "failed", "{notified:?}");
    assert_eq!(notified[1]["error"]["code"], -32602, "{notified:?}");
    assert_eq!(dropped.load(Ordering::SeqCst), 2, "the handler outlives its task");

    // The tasks of a connection end with it.
    start(&mut peer).await;
    drop((connection, peer));
    settle().await;
    assert_eq!(dropped.load(Ordering::SeqCst), 3, "the handler outlives its connection");
}

#[tokio::test(start_paused = true)]
async fn a_server_cannot_have_a_client_keep_more_tasks_or_keep_them_longer_than_it_allows() {
    let limits = AnswerTasks::new().max_tasks(2).max_ttl(Duration::from_secs(90));
    let (client, _) = slow(limits);
    let (_connection, mut peer) = open(&client, R4, json!({})).await;
    let mut question = sampling();
    question["task"]["ttl"] = json!(1_000_000_000);
    for _ in 0..2 {
        let reply = ask(&mut peer, "sampling/createMessage", question.clone()).await;
        assert_eq!(reply["result"]["task"]["ttl"], 90_000, "{reply}");
    }
    let refused = ask(&mut peer, "sampling/createMessage", question.clone()).await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("2 tasks"), "{refused}");
    tokio::time::sleep(Duration::from_secs(90)).await;
    for _ in 0..2 {
        peer.receives("notifications/tasks/status").await;
    }
    let reply = ask(&mut peer, "sampling/createMessage", question).await;
    assert!(reply["result"]["task"].is_object(), "{reply}");

    // Nor more bytes.
    let (mut client, _) = slow(AnswerTasks::new());
    let mut allowed = pintle::proto::Limits::default();
    allowed.queued_bytes = 1000;
    client = client.limits(allowed);
    let (_connection, mut peer) = open(&client, R4, json!({})).await;
    let mut question = sampling();
    question["messages"][0]["content"]["text"] = "x".repeat(600).into();
    let reply = ask(&mut peer, "sampling/createMessage", question.clone()).await;
    assert!(reply["result"]["task"].is_object(), "{reply}");
    let refused = ask(&mut peer, "sampling/createMessage", question).await;
    assert!(refused["error"].is_object(), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_client_declares_what_it_runs_and_ignores_the_wish_otherwise() {
    let declared = async |client: &Client| {
        let (mut server, transport) = Peer::new();
        let script = async {
            let probe = server.receives("server/discover").await;
            server.refuses(&probe, -32601, "what?").await;
            let hello = server.receives("initialize").await;
            hello["params"]["capabilities"]["tasks"].clone()
        };
        let connecting = client.connect(transport);
        tokio::select! {
            tasks = script => tasks,
            _ = connecting => panic!("no handshake"),
        }
    };
    let (client, _) = slow(AnswerTasks::new());
    let only_sampling = json!({"list": {}, "cancel": {}, "requests": {"sampling": {"createMessage": {}}}});
    assert_eq!(declared(&client).await, only_sampling);
    assert_eq!(declared(&Client::new("c", "0").answer_tasks(AnswerTasks::new())).await, Value::Null);

    let plain = Client::new("c", "0")
        .on_sample(|_| async { CreateMessageResult::new("m", ContentBlock::text("at once")) });
    assert_eq!(declared(&plain).await, Value::Null);
    let (_connection, mut peer) = open(&plain, R4, json!({})).await;
    let reply = ask(&mut peer, "sampling/createMessage", sampling()).await;
    assert_eq!(reply["result"]["content"]["text"], "at once", "{reply}");
    assert_eq!(ask(&mut peer, "tasks/list", json!({})).await["error"]["code"], -32601);
}

fn runs_tasks() -> Value {
    json!({"sampling": {}, "elicitation": {}, "tasks": {"cancel": {}, "list": {},
        "requests": {"sampling": {"createMessage": {}}, "elicitation": {"create": {}}}}})
}

fn task(status: &str) -> Value {
    json!({"taskId": "t", "status": status, "createdAt": "2026-01-01T00:00:00Z",
        "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": 60_000, "pollInterval": 200})
}

#[tokio::test(start_paused = true)]
async fn a_server_asks_as_a_task_polls_and_fetches_the_result() {
    let received = Arc::new(Mutex::new(Vec::new()));
    let seen = received.clone();
    let mut polls = 0;
    let mut client = eras::Client::open(&server(), R4, runs_tasks()).await;
    client.answer = Box::new(move |method, params| {
        seen.lock().unwrap().push(method.to_owned());
        match method {
            "elicitation/create" => {
                assert_eq!(params["task"], json!({"ttl": 60_000}), "{params}");
                json!({"task": task("working")})
            }
            "tasks/get" => {
                assert_eq!(params["taskId"], "t");
                polls += 1;
                task(if polls < 3 { "working" } else { "completed" })
            }
            "tasks/result" => json!({"action": "accept", "content": {"name": "Ann"}}),
            // A client may answer at once.
            _ => json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "hm"}}),
        }
    });
    assert_eq!(client.tool("consult").await, "Ann: hm");
    let methods = received.lock().unwrap().clone();
    let expected = [
        "elicitation/create",
        "tasks/get",
        "tasks/get",
        "tasks/get",
        "tasks/result",
        "sampling/createMessage",
    ];
    assert_eq!(methods, expected);
}

/// The params may ask for it too; several questions are asked at the same time.
#[tokio::test(start_paused = true)]
async fn a_question_may_ask_for_a_task_itself() {
    use pintle::{server::Question, types::schema::TaskMetadata};

    let server = Server::new("s", "0").tool(tool("both", |cx: Cx| async move {
        let mut as_task = thought();
        as_task.task = Some(TaskMetadata::new());
        let questions = [
            ("a".to_owned(), Question::Sample(Box::new(as_task))),
            ("b".to_owned(), Question::Sample(Box::new(thought()))),
        ];
        Ok::<_, ToolError>(cx.ask_all(questions).await?.len().to_string())
    }));
    for (capabilities, runs) in [(runs_tasks(), true), (json!({"sampling": {}}), false)] {
        let wishes = Arc::new(AtomicUsize::new(0));
        let counted = wishes.clone();
        let mut client = eras::Client::open(&server, R4, capabilities).await;
        client.answer = Box::new(move |method, params| match method {
            "tasks/get" => task("completed"),
            "sampling/createMessage" if params.get("task").is_some() => {
                counted.fetch_add(1, Ordering::SeqCst);
                json!({"task": task("working")})
            }
            _ => json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "hm"}}),
        });
        assert_eq!(client.tool("both").await, "2");
        assert_eq!(wishes.load(Ordering::SeqCst), usize::from(runs));
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_waits_for_has_its_task_cancelled() {
    let server = Server::new("s", "0").tool(tool("hasty", |cx: Cx| async move {
        cx.ask_as_tasks(Duration::from_secs(60));
        cx.question_timeout(Duration::from_secs(5));
        let error = cx.sample("thought", thought()).await.unwrap_err();
        // The cancellation is sent in the background.
        tokio::time::sleep(Duration::from_secs(1)).await;
        error.to_string()
    }));
    let cancelled = Arc::new(AtomicBool::new(false));
    let flag = cancelled.clone();
    let mut client = eras::Client::open(&server, R4, runs_tasks()).await;
    client.answer = Box::new(move |method, params| match method {
        "sampling/createMessage" => json!({"task": task("working")}),
        "tasks/cancel" => {
            assert_eq!(params["taskId"], "t");
            flag.store(true, Ordering::SeqCst);
            task("cancelled")
        }
        _ => task("working"),
    });
    let error = client.tool("hasty").await;
    assert!(error.contains("5"), "{error}");
    assert!(cancelled.load(Ordering::SeqCst), "the task goes on");
}
