//! A state of the server behind that a client uses again: it counts, and is in the audit log, at every process.

use std::sync::{Arc, Mutex};

use pintle::{
    Server,
    server::{
        Rules, StateKeys,
        store::{MemoryStore, Store},
    },
};
use pintle_testing::kits::store::LossyStore;
use serde_json::{Value, json};

use crate::{
    support::{
        eras::R5,
        line_client::{Raw, modern},
    },
    world::{self, Seen, everything},
};

/// A process of a gateway with a rate of one call, and its audit log.
struct Process {
    client: Raw,
    audit: Arc<Mutex<Vec<Value>>>,
}

impl Process {
    async fn start(behind: &Server, store: Option<Arc<dyn Store>>) -> Self {
        let audit = Arc::<Mutex<Vec<Value>>>::default();
        let log = audit.clone();
        let set = json!({"rules": [{"rate": {"calls": 1, "seconds": 3600}, "decision": "allow"}]});
        let rules = Rules::audited(serde_json::from_value(set).unwrap(), move |record| {
            let mut line = serde_json::to_value(record).unwrap();
            line.as_object_mut().unwrap().remove("timeMs");
            log.lock().unwrap().push(line);
        });
        let rules = match store {
            Some(store) => rules.unwrap().share_rates(store),
            None => rules.unwrap(),
        };
        let server = world::relayed(behind, R5).await;
        let server = server.state_keys(StateKeys::from([7; 32])).gate(rules);
        Self { client: Raw::new(&server), audit }
    }

    async fn book(&mut self, state: &Value) -> Value {
        let mut params = json!({"name": "book"});
        if !state.is_null() {
            params["requestState"] = state.clone();
            params["inputResponses"] = json!({"guests": {"action": "decline"}});
        }
        let id = self.client.request("tools/call", modern(params, everything())).await;
        loop {
            let message = self.client.recv().await;
            if message["id"] == id {
                return message;
            }
        }
    }

    fn audit(&self) -> Vec<Value> {
        std::mem::take(&mut *self.audit.lock().unwrap())
    }
}

fn behind() -> Server {
    world::server(&Seen::default())
}

fn line(decision: &str, repeated: bool) -> Value {
    let mut line = json!({"principal": "@local", "access": "call", "name": "book", "backend": "dice",
        "decision": decision, "rule": "rule 1"});
    if repeated {
        line["repeated"] = true.into();
    }
    line
}

#[tokio::test(start_paused = true)]
async fn a_state_that_is_used_again_counts_and_has_its_line() {
    let mut one = Process::start(&behind(), None).await;
    let state = one.book(&Value::Null).await["result"]["requestState"].clone();
    assert_eq!(one.audit(), [line("allow", false)]);
    let done = one.book(&state).await;
    assert_eq!(done["result"]["content"][0]["text"], "Never mind.", "{done}");
    assert_eq!(one.audit(), [] as [Value; 0], "it belongs to a call that was counted");
    for _ in 0..3 {
        let again = one.book(&state).await;
        assert!(again["error"]["data"]["retryAfterMs"].is_u64(), "{again}");
        assert_eq!(one.audit(), [line("limit", true)]);
    }
}

/// The server behind reads the text, however it is written.
#[tokio::test(start_paused = true)]
async fn a_state_that_is_spelled_otherwise_is_the_same_one() {
    let mut one = Process::start(&behind(), None).await;
    let state = one.book(&Value::Null).await["result"]["requestState"].clone();
    assert!(one.book(&state).await["result"].is_object());
    one.audit();
    let text = state.as_str().unwrap();
    let first = text.chars().next().unwrap();
    let spelled = format!("\"\\u{:04x}{}\"", u32::from(first), &text[first.len_utf8()..]);
    let request = json!({"jsonrpc": "2.0", "id": "x", "method": "tools/call", "params": modern(
        json!({"name": "book", "requestState": state, "inputResponses": {"guests": {"action": "decline"}}}),
        everything())});
    let request = request.to_string();
    let otherwise = request.replace(&state.to_string(), &spelled);
    assert_ne!(otherwise, request);
    one.client.send_text(otherwise).await;
    let again = one.client.recv().await;
    assert!(again["error"]["data"]["retryAfterMs"].is_u64(), "{again}");
    assert_eq!(one.audit(), [line("limit", true)]);
}

#[tokio::test(start_paused = true)]
async fn a_state_that_another_process_has_seen_counts() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let behind = behind();
    let mut one = Process::start(&behind, Some(store.clone())).await;
    let mut two = Process::start(&behind, Some(store)).await;
    let state = one.book(&Value::Null).await["result"]["requestState"].clone();
    assert!(one.book(&state).await["result"].is_object());
    // What a process may do on credit, while it asks for the rate, is one call.
    let again = two.book(&state).await;
    assert_eq!(two.audit(), [line("allow", true)], "{again}");
    let again = two.book(&state).await;
    assert!(again["error"]["data"]["retryAfterMs"].is_u64(), "{again}");
}

#[tokio::test(start_paused = true)]
async fn a_state_of_which_nobody_knows_whether_it_was_seen_counts() {
    let store = LossyStore::new(MemoryStore::new());
    store.set_down(true);
    let mut one = Process::start(&behind(), Some(Arc::new(store))).await;
    let state = one.book(&Value::Null).await["result"]["requestState"].clone();
    one.audit();
    one.book(&state).await;
    assert_eq!(one.audit().first().map(|line| line["repeated"].clone()), Some(json!(true)));
}
