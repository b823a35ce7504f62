//! Clients that go in the middle of something, on sockets: nothing is begun by half, nothing is left behind.

use std::time::Duration;

use serde_json::json;

use crate::support::{
    eras::{ALL, HTTP_SESSIONS, R1, R5},
    http_client::Wire,
    http_server::{World, wait_for},
    http_socket::{Hands, Speaker},
};

#[tokio::test]
async fn in_the_middle_of_a_request_wherever_that_is() {
    let world = World::new();
    let serving = world.serve().await;
    for revision in ALL {
        let speaker = Speaker::open(serving.address(), revision).await;
        let text = speaker.text(&speaker.call(1, "echo", "half"));
        let sessions = world.http.sessions();
        for cut in 0..text.len() {
            let mut hands = Hands::connect(serving.address()).await;
            hands.write(&text[..cut]).await;
        }
        assert_eq!(world.http.sessions(), sessions, "{revision}");
        // The same, to the end.
        let answer = Hands::ask(serving.address(), &text).await;
        assert_eq!(answer.status, if revision == R1 { 202 } else { 200 }, "{answer:?}");
        wait_for(|| world.called.lock().unwrap().len() == 1).await;
        world.called.lock().unwrap().clear();
        match revision {
            R1 => drop(speaker),
            R5 => {}
            _ => assert_eq!(speaker.delete().await.status, 204),
        }
    }
    world.empty().await;
    assert_eq!(serving.shutdown(Duration::from_secs(20)).await.aborted, 0, "no connection is left");
    assert!(world.called.lock().unwrap().is_empty(), "nothing was called that did not come whole");
}

#[tokio::test]
async fn in_the_middle_of_a_stream() {
    let world = World::new();
    let serving = world.serve().await;

    // Without a session the call is cancelled with its connection.
    let speaker = Speaker::open(serving.address(), R5).await;
    let mut hands = speaker.begin(&speaker.call(1, "wait", "a")).await;
    hands.until("notifications/progress").await;
    assert_eq!(world.alive(), 1);
    drop(hands);
    world.empty().await;

    // In the oldest revision the session goes with its stream, and its calls with it.
    let mut speaker = Speaker::open(serving.address(), R1).await;
    assert_eq!(speaker.post(&speaker.call(1, "wait", "a")).await.status, 202);
    speaker.stream.as_mut().unwrap().until("notifications/progress").await;
    assert_eq!((world.alive(), world.http.sessions()), (1, 1));
    drop(speaker);
    world.empty().await;

    // In a session it goes on, and who comes back finds what has been said since.
    for revision in HTTP_SESSIONS {
        let speaker = Speaker::open(serving.address(), revision).await;
        let mut hands = speaker.begin(&speaker.call(1, "hold", "a")).await;
        let last = last_id(&hands.event("notifications/progress").await);
        drop(hands);
        world.hold.add_permits(1);
        let rest = speaker.resume(&last).await.answer().await;
        let end = rest.messages().pop().unwrap();
        assert_eq!(end["result"]["content"][0]["text"], "a", "{rest:?}");
        assert_eq!(speaker.delete().await.status, 204);
    }
    world.empty().await;
    assert_eq!(serving.shutdown(Duration::from_secs(20)).await.aborted, 0);
}

#[tokio::test]
async fn and_back_with_every_id_there_is_and_some_there_are_not() {
    let world = World::new();
    let serving = world.serve().await;
    for revision in HTTP_SESSIONS {
        let speaker = Speaker::open(serving.address(), revision).await;
        let mut call = speaker.call(1, "steps", "a");
        call["params"]["arguments"]["steps"] = json!(20);
        let whole = speaker.post(&call).await;
        let (messages, ids) = (whole.messages(), ids(&whole.body));
        assert_eq!(messages.len(), 21, "{revision}: {whole:?}");
        // In one revision there is an id before the first message.
        let before = ids.len() - messages.len();
        for (at, id) in ids.iter().enumerate() {
            let rest = speaker.resume(id).await.answer().await;
            assert_eq!(rest.messages(), messages[(at + 1).saturating_sub(before)..], "{revision}: {id}");
        }
        let stream = ids[0].split_once('-').unwrap().0;
        let (late, other) = (format!("{stream}-22"), Speaker::open(serving.address(), revision).await);
        let huge = format!("{stream}-18446744073709551616");
        for bad in [&*late, &huge, "99-1", "x", "-", "0", "1-1-1", "%31-1"] {
            let refused = speaker.resume(bad).await.answer().await;
            assert_eq!(refused.status, 400, "{bad}: {refused:?}");
            assert!(refused.body.contains("`Last-Event-ID` is not kept any more; open a stream without it"));
        }
        assert_eq!(other.resume(&ids[0]).await.answer().await.status, 400, "another's session");
        assert_eq!((other.delete().await.status, speaker.delete().await.status), (204, 204));
        assert_eq!(speaker.resume(&ids[0]).await.answer().await.status, 404);
    }
    world.empty().await;
}

#[tokio::test]
async fn between_question_and_answer() {
    let world = World::new();
    let serving = world.serve().await;

    // Without a session a question is an answer: nothing is left here that could wait.
    let speaker = Speaker::open(serving.address(), R5).await;
    let asked = speaker.post(&speaker.call(1, "ask", "a")).await.json();
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    assert_eq!((world.alive(), world.http.sessions()), (0, 0));

    let mut speaker = Speaker::open(serving.address(), R1).await;
    speaker.post(&speaker.call(1, "ask", "a")).await;
    speaker.stream.as_mut().unwrap().until("sampling/createMessage").await;
    drop(speaker);
    world.empty().await;

    for revision in HTTP_SESSIONS {
        let speaker = Speaker::open(serving.address(), revision).await;
        let mut hands = speaker.begin(&speaker.call(1, "ask", "a")).await;
        let came = hands.event("\"message").await;
        let (last, question) = (last_id(&came), question(&came));
        drop(hands);
        // It is answered over another connection, and the answer to the call over a third.
        let result = match question["method"] == "elicitation/create" {
            true => json!({"action": "accept", "content": {"answer": "yes"}}),
            false => json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "yes"}}),
        };
        let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": result});
        assert_eq!(speaker.post(&answer).await.status, 202);
        let rest = speaker.resume(&last).await.answer().await;
        assert_eq!(rest.messages().pop().unwrap()["result"]["content"][0]["text"], "a: yes", "{rest:?}");

        // Another one is never answered: the end of the session is the end of the call.
        let mut hands = speaker.begin(&speaker.call(2, "ask", "b")).await;
        hands.event("\"message").await;
        drop(hands);
        assert_eq!(world.alive(), 1);
        assert_eq!(speaker.delete().await.status, 204);
        world.empty().await;
    }
    assert_eq!(serving.shutdown(Duration::from_secs(20)).await.aborted, 0);
}

#[tokio::test]
async fn and_the_server_too() {
    let world = World::new();
    let serving = world.serve().await;
    for revision in HTTP_SESSIONS {
        let speaker = Speaker::open(serving.address(), revision).await;
        let mut hands = speaker.begin(&speaker.call(1, "wait", "a")).await;
        hands.event("notifications/progress").await;
    }
    assert_eq!(world.alive(), HTTP_SESSIONS.len(), "hanging up cancels nothing in a session");
    let shutdown = serving.shutdown(Duration::ZERO).await;
    assert_eq!(shutdown.cut, HTTP_SESSIONS.len());
    world.empty().await;
}

#[tokio::test(start_paused = true)]
async fn for_good_after_a_question() {
    let world = World::with_idle_sessions(Duration::from_secs(60));
    let http = &world.http;
    for revision in HTTP_SESSIONS {
        let client = Wire::new(http).open(revision, json!({"elicitation": {}, "sampling": {}})).await;
        let params = json!({"name": "ask", "arguments": {"mark": "a"}});
        let mut answer = client.call(1, "tools/call", params).await;
        assert!(answer.message().await.is_some(), "a question");
        // As long as somebody reads, the answer may come.
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert_eq!((world.alive(), http.sessions()), (1, 1));
        drop(answer);
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!((world.alive(), http.sessions()), (1, 1), "it may still come back");
        tokio::time::sleep(Duration::from_secs(120)).await;
        assert_eq!((world.alive(), http.sessions()), (0, 0), "{revision}: nobody will ever answer");
    }
}

fn ids(stream: &str) -> Vec<String> {
    stream.lines().filter_map(|line| line.strip_prefix("id: ")).map(|id| id.trim().to_owned()).collect()
}

fn last_id(stream: &str) -> String {
    ids(stream).pop().unwrap_or_else(|| panic!("no id in {stream}"))
}

fn question(stream: &str) -> serde_json::Value {
    let data = stream
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .find(|data| data.contains("\"method\""));
    serde_json::from_str(data.unwrap_or_else(|| panic!("no question in {stream}"))).unwrap()
}
