//! Calls of resumable tools whose process is gone: another one goes on with them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use pintle::{
    Server,
    server::{
        Cx, ToolError,
        http::{Http, nodes::MemoryFleet},
        tool,
    },
    types::schema::{ContentBlock, CreateMessageParams, Role, SamplingMessage},
};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::{
    eras::R4,
    http_client::{Answer, Wire},
};

/// Far more than anything here takes, under a paused clock.
const SOON: Duration = Duration::from_secs(60);

/// The number of acts of the tool.
#[derive(Clone, Default)]
struct Desk {
    acts: Arc<AtomicUsize>,
}

impl Desk {
    fn acts(&self) -> usize {
        self.acts.load(Ordering::SeqCst)
    }

    /// A server with a tool that asks, acts once, and asks again.
    fn server(&self) -> Server {
        let desk = self.clone();
        let order = tool("order", move |cx: Cx| {
            let desk = desk.clone();
            async move {
                let what = ask(&cx, "what").await?;
                let number = cx.once("act", desk.act()).await?;
                let place = ask(&cx, "where").await?;
                Ok::<_, ToolError>(format!("{what} to {place}, act {number}"))
            }
        });
        Server::new("s", "0").tool(order.task("optional").resumable())
    }

    async fn act(&self) -> usize {
        self.acts.fetch_add(1, Ordering::SeqCst) + 1
    }
}

async fn ask(cx: &Cx, key: &str) -> Result<String, ToolError> {
    let question = SamplingMessage::new(Role::User, ContentBlock::text(key));
    Ok(cx.sample(key, CreateMessageParams::new(vec![question], 10)).await?.text())
}

fn at(client: &Wire, http: &Http) -> Wire {
    Wire { http: http.clone(), ..client.clone() }
}

/// A stream, and the id of its last event.
struct Reader {
    stream: Answer,
    last: String,
}

impl Reader {
    async fn call(client: &Wire) -> Self {
        let stream = client.call(7, "tools/call", json!({"name": "order"})).await;
        Self { stream, last: String::new() }
    }

    async fn resume(&self, client: &Wire) -> Self {
        let stream = client.with("last-event-id", self.last.clone()).get().await;
        assert_eq!(stream.status, 200);
        Self { stream, last: self.last.clone() }
    }

    async fn next(&mut self) -> Value {
        loop {
            let event = timeout(SOON, self.stream.event()).await.expect("there is more").unwrap();
            self.last = event.id.unwrap_or(std::mem::take(&mut self.last));
            if let Ok(message) = serde_json::from_str(&event.data) {
                return message;
            }
        }
    }

    /// Returns the next question, which has to be this one.
    async fn question(&mut self, text: &str) -> Value {
        let message = self.next().await;
        assert_eq!(message["params"]["messages"][0]["content"]["text"], text, "{message}");
        message["id"].clone()
    }
}

async fn answer(client: &Wire, id: &Value, text: &str) {
    let content = json!({"type": "text", "text": text});
    let result = json!({"role": "assistant", "model": "m", "content": content});
    let answered = client.post(json!({"jsonrpc": "2.0", "id": id, "result": result})).await;
    assert_eq!(answered.status, 202);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_at_a_question_goes_on_at_another_process() {
    let (fleet, desk) = (MemoryFleet::new(), Desk::default());
    let crashing = fleet.node().unwrap();
    let a = desk.server().http().unwrap().shared(crashing.clone());
    let b = desk.server().http().unwrap().shared(fleet.node().unwrap());
    let client = Wire::new(&a).open(R4, json!({"sampling": {}})).await;
    let mut call = Reader::call(&client).await;
    let first = call.question("what").await;
    answer(&at(&client, &b), &first, "tea").await;
    let second = call.question("where").await;
    crashing.disconnect();
    let mut resumed = call.resume(&at(&client, &b)).await;
    let withdrawn = resumed.next().await;
    assert_eq!(withdrawn["method"], "notifications/cancelled");
    assert_eq!(withdrawn["params"]["requestId"], second, "the question of the process that is gone");
    // The first question has its answer, and the act its value.
    let again = resumed.question("where").await;
    assert_ne!(again, second);
    answer(&at(&client, &b), &again, "Bergen").await;
    let response = resumed.next().await;
    assert_eq!(response["result"]["content"][0]["text"], "tea to Bergen, act 1", "{response}");
    assert_eq!(response["id"], 7);
    assert!(timeout(SOON, resumed.stream.event()).await.expect("the stream ends").is_none());
    assert_eq!(desk.acts(), 1);
    // The process was only taken for gone. What it does now nobody sees, and it does not act.
    answer(&client, &second, "Oslo").await;
    let mut whole = call.resume(&at(&client, &b)).await;
    let methods: Vec<_> = [whole.next().await, whole.next().await, whole.next().await]
        .map(|message| message["method"].as_str().unwrap_or("response").to_owned())
        .into();
    assert_eq!(methods, ["notifications/cancelled", "sampling/createMessage", "response"]);
}

#[tokio::test(start_paused = true)]
async fn of_two_processes_that_find_a_call_one_goes_on_with_it_and_both_show_it() {
    let (fleet, desk) = (MemoryFleet::new(), Desk::default());
    let crashing = fleet.node().unwrap();
    let a = desk.server().http().unwrap().shared(crashing.clone());
    let [b, c] = [(); 2].map(|()| desk.server().http().unwrap().shared(fleet.node().unwrap()));
    let client = Wire::new(&a).open(R4, json!({"sampling": {}})).await;
    let mut call = Reader::call(&client).await;
    call.question("what").await;
    crashing.disconnect();
    let mut one = call.resume(&at(&client, &b)).await;
    assert_eq!(one.next().await["method"], "notifications/cancelled");
    let question = one.question("what").await;
    // It moves on to a process that does not run the call.
    let mut other = one.resume(&at(&client, &c)).await;
    answer(&at(&client, &c), &question, "tea").await;
    let question = other.question("where").await;
    answer(&at(&client, &c), &question, "Bergen").await;
    let response = other.next().await;
    assert_eq!(response["result"]["content"][0]["text"], "tea to Bergen, act 1", "{response}");
    assert_eq!(desk.acts(), 1);
}
