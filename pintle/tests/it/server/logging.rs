//! What a call tells its client on the way: log messages and progress.

use pintle::{
    Server,
    server::{Cx, tool},
};
use serde_json::{Value, json};
use tracing::Instrument;
use tracing_subscriber::layer::SubscriberExt;

use crate::support::eras::{ALL, Client, R1, R4, R5, each};

fn listening() -> tracing::subscriber::DefaultGuard {
    crate::support::subscriber::set_subscriber(tracing_subscriber::registry().with(pintle::logging::layer()))
}

fn messages(client: &mut Client) -> Vec<(String, String, Value)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let received = client.received();
    assert!(received.iter().all(|message| message["method"] == "notifications/message"), "{received:?}");
    let params = received.iter().map(|message| &message["params"]);
    params.map(|params| (text(&params["level"]), text(&params["logger"]), params["data"].clone())).collect()
}

#[tokio::test]
async fn events_of_a_call_go_to_its_client_at_the_level_it_asked_for() {
    let _listening = listening();
    let work = || async {
        tracing::trace!("too fine");
        tracing::debug!("too fine");
        tracing::info!(files = 3, ratio = 0.5, ok = true, name = "a", size = ?Some(1), "copied {}", "all");
        tracing::warn!(target: "disk", { mcp.level = "alert" }, "full");
        tracing::info!(mcp.level = "notice", logger = "mine", "noted");
        tracing::error!(target: "pintle_oauth::client", "of this project, not for clients");
        tracing::error!(target: "pintle_host::group", "of this project, not for clients");
        tokio::task::yield_now().await;
        tracing::error!("late");
        "done"
    };
    let server = Server::new("s", "0").logging().tool(tool("work", work));
    each(&server, &ALL, json!({}), async |client: &mut Client| {
        assert_eq!(client.tool("work").await, "done");
        assert!(messages(client).is_empty(), "nothing was asked for");
        client.log_level("info").await;
        assert_eq!(client.tool("work").await, "done");
        let notified = messages(client);
        let here = "it::server::logging".to_owned();
        let data =
            json!({"msg": "copied all", "files": 3, "ratio": 0.5, "ok": true, "name": "a", "size": "Some(1)"});
        assert_eq!(
            notified,
            [
                ("info".to_owned(), here.clone(), data),
                ("alert".to_owned(), "disk".to_owned(), json!({"msg": "full"})),
                ("notice".to_owned(), "mine".to_owned(), json!({"msg": "noted"})),
                ("error".to_owned(), here, json!({"msg": "late"})),
            ]
        );
        client.log_level("critical").await;
        client.tool("work").await;
        assert_eq!(messages(client).len(), 1, "only the alert");
    })
    .await;
}

#[tokio::test]
async fn a_server_that_does_not_log_sends_nothing() {
    let _listening = listening();
    let server = Server::new("s", "0").tool(tool("work", || async {
        tracing::error!("unheard");
        ""
    }));
    let mut client = Client::open(&server, R5, json!({})).await;
    client.log_level("debug").await;
    client.tool("work").await;
    assert!(messages(&mut client).is_empty());
}

#[tokio::test]
async fn tasks_that_carry_the_span_speak_for_the_call_and_others_do_not() {
    let _listening = listening();
    let work = || async {
        let with = tokio::spawn(
            async {
                tokio::task::yield_now().await;
                tracing::info!("from a task");
                let inner = tracing::info_span!("inner");
                let _entered = inner.enter();
                tracing::info!("from within");
            }
            .in_current_span(),
        );
        let without = tokio::spawn(async { tracing::info!("lost in space") });
        with.await.unwrap();
        without.await.unwrap();
        "done"
    };
    let server = Server::new("s", "0").logging().tool(tool("work", work));
    each(&server, &ALL, json!({}), async |client: &mut Client| {
        client.log_level("info").await;
        client.tool("work").await;
        let detail: Vec<_> = messages(client).into_iter().map(|(_, _, data)| data["msg"].clone()).collect();
        assert_eq!(detail, ["from a task", "from within"]);
    })
    .await;
}

#[tokio::test]
async fn two_calls_are_not_mixed_up() {
    let _listening = listening();
    let work = |cx: Cx| async move {
        let name = cx.meta().get("name").cloned().unwrap_or_default();
        for _ in 0..3 {
            tracing::info!(name = name.as_str(), "step");
            tokio::task::yield_now().await;
        }
        "done"
    };
    let server = Server::new("s", "0").logging().tool(tool("work", work));
    let mut wants = Client::open(&server, R5, json!({})).await;
    wants.log_level("info").await;
    let first = wants.send("tools/call", json!({"name": "work", "_meta": {"name": "a"}})).await;
    let mut quiet = Client::open(&server, R5, json!({})).await;
    let second = quiet.send("tools/call", json!({"name": "work", "_meta": {"name": "b"}})).await;
    wants.until(first).await;
    quiet.until(second).await;
    assert!(messages(&mut wants).iter().all(|(_, _, data)| data["name"] == "a"));
    assert!(messages(&mut quiet).is_empty());
}

#[tokio::test]
async fn a_flood_of_log_messages_is_cut_and_the_cut_is_reported() {
    let _listening = listening();
    let flood = || async {
        for n in 0..10_000 {
            tracing::info!(n, "drop");
        }
        tokio::task::yield_now().await;
        "done"
    };
    let server = Server::new("s", "0").logging().tool(tool("flood", flood));
    each(&server, &ALL, json!({}), async |client: &mut Client| {
        client.log_level("info").await;
        client.tool("flood").await;
        let notified = messages(client);
        let lost: u64 = notified.iter().filter_map(|(_, _, data)| data["lost"].as_u64()).sum();
        let read = notified.iter().filter(|(_, _, data)| data["msg"] == "drop").count() as u64;
        assert_eq!(lost + read, 10_000);
        assert!(read <= 300, "{read}");
        let last = &notified.last().unwrap();
        assert_eq!((&*last.0, &*last.1), ("warning", "pintle"), "{last:?}");
    })
    .await;
}

#[tokio::test]
async fn progress_is_sent_if_asked_for_in_order_and_before_the_result() {
    let work = |cx: Cx| async move {
        cx.progress_with(1.0, 3.0, "one").await;
        cx.progress(1.0, 3.0).await;
        tokio::task::yield_now().await;
        cx.progress(3.0, None).await;
        format!("{}", cx.wants_progress())
    };
    let server = Server::new("s", "0").tool(tool("work", work));
    each(&server, &ALL, json!({}), async |client: &mut Client| {
        assert_eq!(client.tool("work").await, "false");
        assert!(client.received().is_empty());
        client.call("tools/call", json!({"name": "work", "_meta": {"progressToken": "p"}})).await;
        let notified: Vec<_> = client.received().iter().map(|message| message["params"].clone()).collect();
        let mut first = json!({"progressToken": "p", "progress": 1.0, "total": 3.0, "message": "one"});
        if client.revision == R1 {
            first.as_object_mut().unwrap().remove("message");
        }
        assert_eq!(notified, [first, json!({"progressToken": "p", "progress": 3.0})]);
    })
    .await;
}

#[tokio::test]
async fn a_million_reports_cost_little_and_the_last_one_arrives() {
    let work = |cx: Cx| async move {
        for n in 0..1_000_000 {
            cx.progress(f64::from(n), 999_999.0).await;
        }
        "done"
    };
    let server = Server::new("s", "0").tool(tool("work", work)).tool(tool("quick", || async { "quick" }));
    each(&server, &[R4, R5], json!({}), async |client: &mut Client| {
        let id = client.send("tools/call", json!({"name": "work", "_meta": {"progressToken": 1}})).await;
        assert_eq!(client.tool_while("quick", id).await, "quick", "others have their turn");
        let notified = client.received();
        assert_eq!(notified.last().unwrap()["params"]["progress"], 999_999.0);
        assert!(notified.len() < 2000, "{}", notified.len());
    })
    .await;
}
