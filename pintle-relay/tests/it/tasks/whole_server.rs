//! Tasks of a server that a relay is as a whole: they keep the ids that they have there.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use pintle::{
    Server,
    server::{Access, Decision, GateRequest, RequestError, RuleSet, Rules, method},
};
use serde_json::{Value, json};

use crate::{
    support::eras::{Client, R5},
    world::{self, ERAS},
};

const METHODS: [&str; 4] = ["tasks/get", "tasks/result", "tasks/cancel", "tasks/update"];

/// A server that answers requests for tasks, and notes them.
fn behind(asked: &Arc<Mutex<Vec<Value>>>) -> Server {
    METHODS.into_iter().fold(Server::new("tasks", "1"), |server, name| {
        let asked = asked.clone();
        server.method(method(name, move |_, params: Value| {
            asked.lock().unwrap().push(json!([name, params["taskId"]]));
            async { Ok::<_, RequestError>(json!({"status": "completed"})) }
        }))
    })
}

/// The requests that a client of a revision may send.
fn methods(revision: &str) -> impl Iterator<Item = &'static str> {
    let absent = if revision == R5 { "tasks/result" } else { "tasks/update" };
    METHODS.into_iter().filter(move |method| *method != absent)
}

fn declares() -> Value {
    json!({"extensions": {"io.modelcontextprotocol/tasks": {}}})
}

#[tokio::test(start_paused = true)]
async fn only_a_text_of_a_bounded_length_is_the_id_of_a_task() {
    for (downstream, upstream) in
        [(ERAS[0], ERAS[0]), (ERAS[0], ERAS[1]), (ERAS[1], ERAS[0]), (ERAS[1], ERAS[1])]
    {
        let asked = Arc::<Mutex<Vec<Value>>>::default();
        let judged = Arc::<Mutex<Vec<String>>>::default();
        for is_gated in [false, true] {
            let mut server = world::relay(&behind(&asked), upstream).await.into_server();
            if is_gated {
                let seen = judged.clone();
                server = server.gate(move |request: &GateRequest<'_>| {
                    if request.access == Access::Call {
                        seen.lock().unwrap().push(request.name().to_owned());
                    }
                    Decision::Allow
                });
            }
            let mut client = Client::open(&server, downstream, declares()).await;
            for method in methods(downstream) {
                let wrong = [json!(["t-1"]), json!({"t-1": 1}), json!(1), json!(null), json!("")];
                let wrong = wrong.into_iter().map(|id| json!({ "taskId": id }));
                let absent = [json!({}), json!({"taskId": "t".repeat(8193)})];
                for params in wrong.chain(absent) {
                    let before = asked.lock().unwrap().len();
                    let answer = client.call(method, params).await;
                    assert_eq!(asked.lock().unwrap().len(), before, "{method}");
                    assert_eq!(
                        answer["error"]["code"], -32602,
                        "{downstream} to {upstream}: {method} {answer}"
                    );
                }
                // Any other is one of that server.
                for id in ["t-1".to_owned(), "t".repeat(8192)] {
                    let answer = client.call(method, json!({"taskId": id})).await;
                    assert_ne!(
                        answer["error"]["code"], -32602,
                        "{downstream} to {upstream}: {method} {answer}"
                    );
                    // The other era has other methods.
                    if downstream == upstream {
                        assert_eq!(
                            answer["result"]["status"], "completed",
                            "{downstream}: {method} {answer}"
                        );
                        assert_eq!(asked.lock().unwrap().pop(), Some(json!([method, id])));
                    }
                }
                // The gates see them all.
                let seen = std::mem::take(&mut *judged.lock().unwrap());
                assert!(seen.iter().all(|seen| seen == method) && (seen.len() == 9 || !is_gated), "{seen:?}");
            }
        }
    }
}

/// What is hidden is not there, whatever it is asked for; and what is wrong counts as what is right does.
#[tokio::test(start_paused = true)]
async fn rules_rates_and_the_audit_log_are_those_of_the_method() {
    for (downstream, upstream) in [(ERAS[0], ERAS[1]), (ERAS[1], ERAS[0])] {
        let asked = Arc::default();
        let lines = Arc::<Mutex<Vec<Value>>>::default();
        let set: RuleSet = serde_json::from_value(json!({"rules": [
            {"name": "few", "methods": ["tasks/get"], "rate": {"calls": 2, "seconds": 60}},
            {"name": "get", "methods": ["tasks/get"], "decision": "allow"},
        ]}))
        .unwrap();
        let written = lines.clone();
        let rules = Rules::audited(set, move |record| {
            written.lock().unwrap().push(json!([record.access, record.name, record.decision]));
        });
        let front = world::relay(&behind(&asked), upstream).await.into_server().gate(rules.unwrap());
        let mut client = Client::open(&front, downstream, declares()).await;
        let mut expect = async |method: &str, id: Value, code: i64, decision: &str| {
            let answer = client.call(method, json!({"taskId": id})).await;
            assert_eq!(answer["error"]["code"].as_i64().unwrap_or_default(), code, "{method} {id} {answer}");
            let lines = std::mem::take(&mut *lines.lock().unwrap());
            assert_eq!(lines, [json!(["call", method, decision])], "{downstream} to {upstream}");
        };
        for id in [json!("t-1"), json!(1)] {
            expect("tasks/cancel", id, -32601, "hide").await;
        }
        expect("tasks/get", json!(["t-1"]), -32602, "allow").await;
        expect("tasks/get", json!("t-1"), 0, "allow").await;
        assert_eq!(*asked.lock().unwrap(), [json!(["tasks/get", "t-1"])]);
        let limited = client.call("tasks/get", json!({"taskId": "t-1"})).await;
        assert!(limited["error"]["data"]["retryAfterMs"].is_u64(), "{limited}");
        tokio::time::advance(Duration::from_secs(60)).await;
    }
}
