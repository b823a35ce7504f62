//! A panic is answered, and nobody else notices.

use std::task::{Context, Poll};

use pintle::{
    Server,
    server::{Cx, Entry, IntoToolResult, Next, Outcome, prompt, resource, tool},
    types::schema::CallToolResult,
};
use serde_json::{Value, json};

use crate::support::{
    line_client::modern,
    pipe::{Pipe, call, cancel, settle, text},
};

fn panics() -> bool {
    std::hint::black_box(true)
}

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(!panics() || std::thread::panicking(), "dropped");
    }
}

struct BadResult;

impl IntoToolResult for BadResult {
    fn into_tool_result(self) -> Result<CallToolResult, Outcome> {
        panic!("no result")
    }
}

#[derive(Clone)]
struct BadLayer(Next);

impl tower_service::Service<Cx> for BadLayer {
    type Response = Outcome;
    type Error = std::convert::Infallible;
    type Future = <Next as tower_service::Service<Cx>>::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, cx: Cx) -> Self::Future {
        assert!(!cx.params().as_str().contains("bad-layer"), "the layer fails");
        self.0.call(cx)
    }
}

struct Bad;

impl tower_layer::Layer<Next> for Bad {
    type Service = BadLayer;

    fn layer(&self, next: Next) -> BadLayer {
        BadLayer(next)
    }
}

fn server() -> Server {
    let sync = || {
        assert!(!panics(), "at once");
        std::future::ready("")
    };
    let later = || async {
        tokio::task::yield_now().await;
        assert!(!panics(), "later");
        ""
    };
    let bomb = || async {
        let _bomb = Bomb;
        std::future::pending::<String>().await
    };
    let done_bomb = |cx: Cx| async move {
        let bomb = Bomb;
        tokio::task::yield_now().await;
        drop(cx);
        std::mem::forget(bomb);
        BadResult
    };
    Server::new("s", "0")
        .tool(tool("fine", || async { "fine" }))
        .tool(tool("sync", sync))
        .tool(tool("later", later))
        .tool(tool("bomb", bomb))
        .tool(tool("result", done_bomb))
        .prompt(prompt("p", || async { "p".to_owned() }).argument("a", "").complete(
            "a",
            |partial: pintle::server::Partial| async move {
                assert!(partial.value != "boom", "the completer fails");
                vec!["a".to_owned()]
            },
        ))
        .resource(resource("r://1", "r", || async { "r" }))
        .filter(|_, entry| {
            if let Entry::Resource(_) = entry {
                assert!(!panics(), "the filter fails");
            }
            true
        })
        .on_notification("notifications/sync", |_, _| {
            assert!(!panics(), "the notification's handler fails at once");
            std::future::ready(())
        })
        .on_notification("notifications/later", |_, _| async {
            tokio::task::yield_now().await;
            assert!(!panics(), "the notification's handler fails later");
        })
        .layer(&Bad)
}

fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": modern(params, json!({}))})
}

#[tokio::test(start_paused = true)]
async fn nothing_that_panics_ends_the_connection() {
    let (mut pipe, _serving) = Pipe::open(&server(), 1 << 16);
    let reference = json!({"type": "ref/prompt", "name": "p"});
    for (id, message) in [
        call(0, "sync", json!({})),
        call(1, "later", json!({})),
        call(2, "result", json!({})),
        call(3, "fine", json!({"x": "bad-layer"})),
        request(
            4,
            "completion/complete",
            json!({"ref": reference, "argument": {"name": "a", "value": "boom"}}),
        ),
        request(5, "resources/list", json!({})),
        request(6, "resources/read", json!({"uri": "r://1"})),
    ]
    .into_iter()
    .enumerate()
    {
        pipe.say(message).await;
        let answer = pipe.receive().await;
        assert_eq!(answer["id"], id, "{answer}");
        // Who types on is not bothered with a completer that fails.
        let empty = answer["result"]["completion"]["values"] == json!([]);
        assert!(empty || answer["error"]["code"] == -32603, "{answer}");
        assert!(!answer.to_string().contains("fails"), "what was said is for the log: {answer}");
    }
    for method in ["notifications/sync", "notifications/later"] {
        pipe.say(json!({"jsonrpc": "2.0", "method": method})).await;
    }
    pipe.say(call(7, "bomb", json!({}))).await;
    settle().await;
    pipe.say(cancel(7)).await;
    settle().await;
    pipe.say(call(8, "fine", json!({}))).await;
    assert_eq!(text(&pipe.receive().await), "fine");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_while_it_is_dropped_after_its_time_is_answered() {
    let server = server().call_timeout(std::time::Duration::from_secs(1));
    let (mut pipe, _serving) = Pipe::open(&server, 1 << 16);
    pipe.say(call(1, "bomb", json!({}))).await;
    let answer = pipe.receive().await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("longer than 1s"), "{answer}");
    pipe.say(call(2, "fine", json!({}))).await;
    assert_eq!(text(&pipe.receive().await), "fine");
}

#[tokio::test(start_paused = true)]
async fn a_server_whose_locks_are_poisoned_goes_on() {
    struct Refuses;
    impl tower_layer::Layer<Next> for Refuses {
        type Service = BadLayer;
        fn layer(&self, _: Next) -> BadLayer {
            panic!("while the state is being changed")
        }
    }
    let server = server();
    let other = server.clone();
    std::thread::spawn(move || drop(other.layer(&Refuses))).join().unwrap_err();
    let (mut pipe, _serving) = Pipe::open(&server, 1 << 16);
    pipe.say(call(1, "fine", json!({}))).await;
    assert_eq!(text(&pipe.receive().await), "fine");
    server.add_tool(tool("new", || async { "new" })).unwrap();
    pipe.say(call(2, "new", json!({}))).await;
    assert_eq!(text(&pipe.receive().await), "new");
}

#[tokio::test(start_paused = true)]
async fn a_filter_that_panics_during_a_notification_hides_the_change() {
    let server = server();
    let (mut pipe, _serving) = Pipe::open(&server, 1 << 16);
    let wanted = json!({"notifications": {"resourceSubscriptions": ["r://1"]}});
    pipe.say(request(1, "subscriptions/listen", wanted)).await;
    pipe.receive().await;
    server.resource_updated("r://1");
    settle().await;
    pipe.say(call(2, "fine", json!({}))).await;
    assert_eq!(text(&pipe.receive().await), "fine");
}
