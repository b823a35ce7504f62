//! Questions from wherever a handler's code runs.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use pintle::{
    Server,
    proto::Limits,
    server::{AskError, Cx, ToolError, tool},
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::support::pipe::{Pipe, asked, call, cancel, form, session_call, settle, text, within, yes};

async fn session(server: &Server) -> Pipe {
    Pipe::session(server, 1 << 16, "2025-11-25", json!({"elicitation": {}})).await.0
}

/// Makes a stateless call until it ends, and counts the rounds.
async fn rounds(server: &Server, tool: &str) -> (usize, Value) {
    let (mut pipe, _serving) = Pipe::open(server, 1 << 16);
    let mut message = call(0, tool, json!({}));
    for round in 1.. {
        message["id"] = round.into();
        pipe.say(message.clone()).await;
        let answer = pipe.receive().await;
        if answer["result"]["resultType"] != "input_required" {
            return (round, answer);
        }
        message["params"]["requestState"] = answer["result"]["requestState"].clone();
        message["params"]["inputResponses"] = json!({});
        for key in answer["result"]["inputRequests"].as_object().unwrap().keys() {
            message["params"]["inputResponses"][key] = json!({"action": "accept", "content": {"yes": true}});
        }
    }
    unreachable!()
}

#[tokio::test(start_paused = true)]
async fn two_questions_side_by_side_are_one_round() {
    let both = |cx: Cx| async move {
        let (one, two) = tokio::join!(asked(&cx, "one"), asked(&cx, "two"));
        one?;
        two?;
        Ok::<_, ToolError>("both")
    };
    let server = Server::new("s", "0").tool(tool("both", both));
    let (rounds, answer) = rounds(&server, "both").await;
    assert_eq!((rounds, text(&answer)), (2, "both"));
    let mut pipe = session(&server).await;
    pipe.say(session_call(1, "both", json!({}))).await;
    let (one, two) = (pipe.receive().await, pipe.receive().await);
    pipe.say(yes(&two)).await;
    pipe.say(yes(&one)).await;
    assert_eq!(text(&pipe.receive().await), "both");
}

#[tokio::test(start_paused = true)]
async fn many_questions_of_the_explicit_form_are_one_round() {
    let all = |cx: Cx| async move {
        let keys = ["a", "b", "c"].map(|key| (key.to_owned(), form(key)));
        let answers = cx.ask_all(keys).await?;
        Ok::<_, ToolError>(answers.into_keys().collect::<String>())
    };
    let server = Server::new("s", "0").tool(tool("all", all));
    let (rounds, answer) = rounds(&server, "all").await;
    assert_eq!((rounds, text(&answer)), (2, "abc"));
    let mut pipe = session(&server).await;
    pipe.say(session_call(1, "all", json!({}))).await;
    for _ in 0..3 {
        let question = pipe.receive().await;
        pipe.say(yes(&question)).await;
    }
    assert_eq!(text(&pipe.receive().await), "abc");
}

#[tokio::test(start_paused = true)]
async fn a_task_of_the_handler_asks_in_both_eras() {
    let spawned = |cx: Cx| async move {
        tokio::spawn(async move { asked(&cx, "q").await }).await??;
        Ok::<_, ToolError>("asked")
    };
    let server = Server::new("s", "0").tool(tool("spawned", spawned));
    let (rounds, answer) = rounds(&server, "spawned").await;
    assert_eq!((rounds, text(&answer)), (2, "asked"));
    let mut pipe = session(&server).await;
    pipe.say(session_call(1, "spawned", json!({}))).await;
    let question = pipe.receive().await;
    pipe.say(yes(&question)).await;
    assert_eq!(text(&pipe.receive().await), "asked");
}

/// A tool whose task asks and outlives the call: what it hears goes to the channel.
fn outliving() -> (Server, mpsc::UnboundedReceiver<Result<(), AskError>>) {
    let (tx, received) = mpsc::unbounded_channel();
    let leave = move |cx: Cx| {
        let tx = tx.clone();
        async move {
            let of_task = cx.clone();
            tokio::spawn(async move {
                let first = of_task.ask("q", form("q")).await.map(drop);
                tx.send(first).unwrap();
                let after = of_task.ask("after", form("after")).await.map(drop);
                tx.send(after).unwrap();
            });
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            "left"
        }
    };
    (Server::new("s", "0").tool(tool("leave", leave)), received)
}

#[tokio::test(start_paused = true)]
async fn a_question_of_a_call_that_is_over_ends_and_is_taken_back() {
    let (server, mut received) = outliving();
    let mut pipe = session(&server).await;
    pipe.say(session_call(1, "leave", json!({}))).await;
    let question = pipe.receive().await;
    let mut rest = [pipe.receive().await, pipe.receive().await];
    rest.sort_by_key(|line| line["id"].is_null());
    assert_eq!(text(&rest[0]), "left");
    assert_eq!(rest[1]["method"], "notifications/cancelled");
    assert_eq!(rest[1]["params"]["requestId"], question["id"]);
    for _ in 0..2 {
        assert!(matches!(within(received.recv()).await.unwrap(), Err(AskError::CallOver)));
    }
    // An answer that comes all the same is nobody's.
    pipe.say(yes(&question)).await;
    pipe.say(json!({"jsonrpc": "2.0", "id": 2, "method": "ping"})).await;
    assert_eq!(pipe.receive().await["id"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_parked_task_ends_with_its_round() {
    let (server, mut received) = outliving();
    let (mut pipe, _serving) = Pipe::open(&server, 1 << 16);
    pipe.say(call(1, "leave", json!({}))).await;
    assert_eq!(pipe.receive().await["result"]["resultType"], "input_required");
    for _ in 0..2 {
        assert!(matches!(within(received.recv()).await.unwrap(), Err(AskError::CallOver)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_takes_its_questions_back() {
    let both = |cx: Cx| async move {
        let (one, two) = tokio::join!(asked(&cx, "one"), asked(&cx, "two"));
        one.and(two).map(|()| "both")
    };
    let server = Server::new("s", "0").tool(tool("both", both));
    let mut pipe = session(&server).await;
    pipe.say(session_call(1, "both", json!({}))).await;
    let mut questions = vec![pipe.receive().await["id"].clone(), pipe.receive().await["id"].clone()];
    pipe.say(cancel(1)).await;
    for _ in 0..2 {
        let line = pipe.receive().await;
        assert_eq!(line["method"], "notifications/cancelled", "{line}");
        questions.retain(|id| *id != line["params"]["requestId"]);
    }
    assert!(questions.is_empty());
    settle().await;
    pipe.say(json!({"jsonrpc": "2.0", "id": 2, "method": "ping"})).await;
    assert_eq!(pipe.receive().await["id"], 2, "and nothing else is said");
}

#[tokio::test(start_paused = true)]
async fn one_who_does_not_mind_goes_on() {
    let stubborn = |cx: Cx| async move {
        let over = asked(&cx, "q").await.is_err();
        format!("{over}")
    };
    let server = Server::new("s", "0").tool(tool("stubborn", stubborn));
    // Refused by the client: the handler decides what to make of it.
    let mut pipe = session(&server).await;
    pipe.say(session_call(1, "stubborn", json!({}))).await;
    let question = pipe.receive().await;
    pipe.say(json!({"jsonrpc": "2.0", "id": question["id"], "error": {"code": -1, "message": "no"}})).await;
    assert_eq!(text(&pipe.receive().await), "true");
}

#[tokio::test(start_paused = true)]
async fn an_act_beside_a_question_is_done_once_and_the_round_waits_for_it() {
    let acts = Arc::new([const { AtomicUsize::new(0) }; 2]);
    let count = acts.clone();
    let act = move |cx: Cx| {
        let count = count.clone();
        async move {
            let quick = cx.once("quick", async { count[0].fetch_add(1, Ordering::SeqCst) });
            let slow = cx.once("slow", async {
                tokio::task::yield_now().await;
                count[1].fetch_add(1, Ordering::SeqCst)
            });
            // The question would end the round while the slow act is half-way.
            let (quick, slow, asked) = tokio::join!(quick, slow, asked(&cx, "q"));
            asked?;
            Ok::<_, ToolError>(format!("{} {}", quick?, slow?))
        }
    };
    let server = Server::new("s", "0").tool(tool("act", act));
    let (rounds, answer) = rounds(&server, "act").await;
    assert_eq!((rounds, text(&answer)), (2, "0 0"));
    assert_eq!([acts[0].load(Ordering::SeqCst), acts[1].load(Ordering::SeqCst)], [1, 1]);
}

#[tokio::test(start_paused = true)]
async fn words_for_the_next_round_arrive() {
    let note = |cx: Cx| async move {
        let before = cx.note();
        cx.set_note(format!("{}!", before.clone().unwrap_or_default()));
        asked(&cx, "one").await?;
        asked(&cx, "two").await?;
        Ok::<_, ToolError>(before.unwrap_or_default())
    };
    let server = Server::new("s", "0").tool(tool("note", note));
    let (rounds, answer) = rounds(&server, "note").await;
    assert_eq!((rounds, text(&answer)), (3, "!!"));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_too_long_fails_its_question_at_once() {
    let mut limits = Limits::default();
    limits.message_bytes = 10_000;
    let ask = |cx: Cx| async move {
        let error = asked(&cx, "q").await.unwrap_err().to_string();
        Ok::<_, ToolError>(error)
    };
    let server = Server::new("s", "0").limits(limits).tool(tool("ask", ask));
    let mut pipe = session(&server).await;
    pipe.say(session_call(1, "ask", json!({}))).await;
    let question = pipe.receive().await;
    let long = format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{"action":"accept","content":{{"yes":"{}"}}}}}}"#,
        question["id"],
        "x".repeat(20_000)
    );
    pipe.write(&format!("{long}\n")).await;
    let answer = pipe.receive().await;
    assert_eq!(answer["id"], 1);
    assert!(
        text(&answer).contains("the client's answer has more than 10000 bytes: ask for less"),
        "{answer}"
    );
}
