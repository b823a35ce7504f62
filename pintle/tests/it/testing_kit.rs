//! The kit that servers are tested with: what it lets pass, what it fails, and in which words.

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::atomic::{AtomicUsize, Ordering},
    task::Poll,
};

use pintle::{
    Client, Server,
    client::{Answer, Change},
    server::{Args, Cx, Json, ToolError, prompt, resource, template, tool},
    types::schema::{ContentBlock, CreateMessageParams, LoggingLevel, Role, SamplingMessage, Tool},
};
use pintle_testing::{CatalogueSnapshot, TestClient, TestConnection};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Deserialize, JsonSchema)]
struct Seat {
    row: u8,
}

#[derive(Deserialize, JsonSchema)]
struct Meal {
    dish: String,
}

#[derive(Deserialize, JsonSchema, PartialEq, Serialize, Debug)]
struct Booked {
    row: u8,
    dish: String,
}

async fn book(cx: Cx) -> Result<Json<Booked>, ToolError> {
    let (seat, meal) =
        tokio::join!(cx.elicit::<Seat>("seat", "Which row?"), cx.elicit::<Meal>("meal", "Which dish?"));
    let (Some(seat), Some(meal)) = (seat?.accepted(), meal?.accepted()) else {
        return Err(ToolError::new("nothing was booked"));
    };
    cx.log(LoggingLevel::Info, Some("desk"), &"booking").await;
    cx.progress_with(1.0, 1.0, "booked").await;
    Ok(Json(Booked { row: seat.row, dish: meal.dish }))
}

async fn pay(cx: Cx) -> Result<&'static str, ToolError> {
    if !cx.can_elicit_url() {
        return Ok("pay at the desk");
    }
    Ok(if cx.elicit_url("pay", "Please pay.", "https://example.com/pay/7").await? {
        "paid"
    } else {
        "not paid"
    })
}

async fn sum_up(cx: Cx) -> Result<String, ToolError> {
    let asked = SamplingMessage::new(Role::User, ContentBlock::text("Sum up: the sea is deep."));
    let written = cx.sample("sum", CreateMessageParams::new(vec![asked], 50)).await?;
    let places = cx.roots().await?.len();
    let message: String = written.content.as_slice().iter().filter_map(ContentBlock::as_text).collect();
    Ok(format!("{message} ({places} places)"))
}

fn server() -> Server {
    Server::new("desk", "1.0.0")
        .logging()
        .tool(tool("book", book))
        .tool(tool("pay", pay))
        .tool(tool("sum_up", sum_up))
        .resource(resource("desk://bell", "bell", || async { "silent" }))
}

fn seat() -> Answer {
    Answer::accept(json!({"row": 7}))
}

/// What a test says when it fails.
async fn failure(test: impl Future<Output = ()>) -> String {
    let text = panicked(test).await;
    // The place in this file, which is tested below.
    match text.split_once(": ") {
        Some((place, text)) if place.starts_with(file!()) => text.to_owned(),
        _ => text,
    }
}

async fn panicked(test: impl Future<Output = ()>) -> String {
    let mut test = pin!(test);
    let ended = poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| test.as_mut().poll(cx))) {
        Ok(Poll::Ready(())) => Poll::Ready(Ok(())),
        Ok(Poll::Pending) => Poll::Pending,
        Err(panic) => Poll::Ready(Err(panic)),
    });
    let panic = ended.await.expect_err("the test was to fail");
    panic.downcast_ref::<String>().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn a_call_records_all_messages_in_both_eras() {
    // The order of the answers is not that of the questions.
    let client = TestClient::new().form("dish", Answer::accept(json!({"dish": "cod"}))).form("row", seat());
    client
        .both_eras(&server(), async |client| {
            let call = client.tool("book", ()).await;
            assert_eq!(call.structured::<Booked>(), Booked { row: 7, dish: "cod".into() });
            assert_eq!(call.text(), r#"{"row":7,"dish":"cod"}"#);
            let mut questions = call.questions.clone();
            questions.sort();
            assert_eq!(questions, ["Which dish?", "Which row?"]);
            assert_eq!(call.progress.len(), 1);
            assert_eq!(call.progress[0].message.as_deref(), Some("booked"));
            assert_eq!(call.logs.len(), 1);
            assert_eq!(
                (call.logs[0].logger.as_deref(), &call.logs[0].data),
                (Some("desk"), &json!("booking"))
            );
            assert_eq!((client.logs(), client.questions()), (Vec::new(), Vec::new()), "both were looked at");
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn pages_the_model_and_roots_are_answered_in_both_eras() {
    TestClient::new()
        .page("/pay/", Answer::Accept(Value::Null))
        .page("/pay/", Answer::Decline)
        .sample("Sum up", "deep")
        .roots(["file:///a", "file:///b"])
        .both_eras(&server(), async |client| {
            assert_eq!(client.tool("pay", ()).await.text(), "paid");
            assert_eq!(client.tool("pay", ()).await.text(), "not paid", "each answer is for one question");
            assert_eq!(client.tool("sum_up", ()).await.text(), "deep (2 places)");
        })
        .await;
    TestClient::incapable()
        .both_eras(&server(), async |client| {
            assert_eq!(client.tool("pay", ()).await.text(), "pay at the desk");
        })
        .await;
}

#[cfg(all(feature = "http-client", feature = "http-server"))]
#[tokio::test(start_paused = true)]
async fn a_client_over_http_is_one() {
    let server = Server::new("desk", "1.0.0")
        .tool(tool("transport", |cx: Cx| async move { format!("{:?}", cx.transport()) }));
    for (client, transport) in [(TestClient::new(), "Memory"), (TestClient::new().over_http(), "Http")] {
        client
            .both_eras(&server, async |client| {
                assert_eq!(client.tool("transport", ()).await.text(), transport)
            })
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn answers_are_found_by_key_in_both_eras() {
    let client = TestClient::new()
        .answer("meal", Answer::accept(json!({"dish": "cod"})))
        .answer("seat", seat())
        .answer("pay", Answer::Accept(Value::Null))
        .model_answer("sum", "deep")
        .roots(["file:///a"]);
    let test = async |client: &TestConnection| {
        let booked = client.tool("book", ()).await.structured::<Booked>();
        assert_eq!(booked, Booked { row: 7, dish: "cod".into() });
        assert_eq!(client.tool("pay", ()).await.text(), "paid");
        assert_eq!(client.tool("sum_up", ()).await.text(), "deep (1 places)");
    };
    client.both_eras(&server(), test).await;
    #[cfg(all(feature = "http-client", feature = "http-server"))]
    client.over_http().both_eras(&server(), test).await;
    let message = failure(async {
        let client = TestClient::new().answer("other", seat()).connect(&server()).await;
        client.tool("pay", ()).await;
    });
    let message = message.await;
    assert!(message.ends_with("left in the script: `.answer(\"other\", ..)`"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn the_key_of_a_question_is_sent_in_a_session_to_those_who_declare_that() {
    let server = Server::new("s", "1").tool(tool("pay", async |cx: Cx| -> Result<String, ToolError> {
        let sent = cx.elicit::<()>("sure", "Sure?").await?.accepted().is_some();
        Ok(sent.to_string())
    }));
    for (revision, declares, expected) in [
        ("2025-06-18", false, None),
        ("2025-06-18", true, Some("sure")),
        ("2025-11-25", true, Some("sure")),
        ("2026-07-28", false, Some("sure")),
    ] {
        let (seen, mut keys) = tokio::sync::mpsc::unbounded_channel();
        let client =
            Client::new("c", "1").revisions([revision.parse().unwrap()]).on_elicit(move |question| {
                seen.send((question.key.clone(), question.meta.is_some())).unwrap();
                async { Answer::accept(json!({})) }
            });
        let client = match declares {
            true => client.extension("dev.pintle/question-keys", Default::default()),
            false => client,
        };
        let connection = client.connect(server.in_process().unwrap()).await.unwrap();
        assert_eq!(connection.call_tool("pay", ()).await.unwrap().text(), "true");
        let (key, meta) = keys.recv().await.unwrap();
        assert_eq!((key.as_deref(), meta), (expected, declares), "{revision}");
    }
}

#[cfg(all(feature = "http-client", feature = "http-server"))]
#[tokio::test(start_paused = true)]
async fn any_transport_will_do() {
    use pintle::client::http::Http;

    let server = server();
    let client = TestClient::new().form("dish", Answer::accept(json!({"dish": "cod"}))).form("row", seat());
    let test = async |client: &TestConnection| {
        assert_eq!(client.tool("book", ()).await.text(), r#"{"row":7,"dish":"cod"}"#);
    };
    client.both_eras_over(async || server.in_process().unwrap(), test).await;
    let http = async || Http::new("http://localhost/mcp").unwrap().client(server.http().unwrap());
    client.both_eras_over(http, test).await;
    let connected = client.connect_to(http().await).await;
    assert_eq!(connected.revision().as_str(), "2026-07-28");
    test(&connected).await;
    connected.finish().await;
    let old = server.clone().revisions(["2025-11-25".parse().unwrap()]);
    let message = failure(async { client.both_eras_over(async || old.in_process().unwrap(), test).await });
    let message = message.await;
    assert!(message.starts_with("the server does not open a connection (2026-07-28): "), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_expected_fails_the_test() {
    let server = server();
    for era in ["2025-11-25", "2026-07-28"] {
        let server = server.clone().revisions([era.parse().unwrap()]);
        let message = failure(async {
            let client = TestClient::new().form("row", seat()).connect(&server).await;
            client.tool("book", ()).await;
        });
        let (message, left) = (message.await, "; left in the script: ");
        assert_eq!(
            message.split_once(left).unwrap().0,
            format!(
                "in {era}: the server asked for a form with `dish` with the key `meal` and no answer fits: \"Which dish?\"; add \
                 `.form(\"Which dish?\", ..)`"
            )
        );
        let message = failure(async {
            let client = TestClient::new().form("https", seat()).connect(&server).await;
            client.tool("pay", ()).await;
        });
        let message = message.await;
        assert!(
            message.contains("a page (\"Please pay.\") with the key `pay` and no answer fits: \"https://example.com/pay/7\""),
            "{message}"
        );
        assert!(message.ends_with(&format!("{left}`.form(\"https\", ..)`")), "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_nobody_asked_for_fails_the_test() {
    let message = failure(async {
        let client = TestClient::new().sample("never", "x");
        client.both_eras(&server(), async |client| assert!(client.ping().await.is_ok())).await;
    });
    assert_eq!(
        message.await,
        "in 2025-11-25: never asked for: `.sample(\"never\", ..)`; remove it, or find out why"
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_with_a_field_that_the_form_does_not_have_fails_the_test() {
    let message = failure(async {
        let client = TestClient::new()
            .form("row", Answer::accept(json!({"row": 7, "colum": 1})))
            .form("dish", Answer::Decline)
            .connect(&server())
            .await;
        client.tool("book", ()).await;
    });
    assert_eq!(
        message.await,
        "in 2026-07-28: the answer to \"Which row?\" fills in `colum`, and the form has only `row`"
    );
}

#[tokio::test(start_paused = true)]
async fn a_failure_names_the_line_of_the_test() {
    let server = server();
    let client = TestClient::new().connect(&server).await;
    let (line, text) = (line!(), panicked(async { drop(client.tool("boook", ()).await) }).await);
    assert!(text.starts_with(&format!("{}:{line}:", file!())), "{text}");
    let (line, text) = (line!(), panicked(async { drop(client.next_change().await) }).await);
    assert!(text.starts_with(&format!("{}:{line}:", file!())), "{text}");
    let unused = TestClient::new().sample("never", "x");
    let (line, text) = (line!(), panicked(unused.both_eras(&server, async |_| {})).await);
    assert!(text.starts_with(&format!("{}:{line}:", file!())), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_server_from_a_function_is_new_in_each_era() {
    let made = AtomicUsize::new(0);
    let factory = || {
        made.fetch_add(1, Ordering::Relaxed);
        server()
    };
    TestClient::new()
        .both_eras(factory, async |client| {
            assert_eq!(client.tools().await.unwrap().len(), server().tools_where(|_: &Tool| true).len());
        })
        .await;
    assert_eq!(made.into_inner(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_refused_fails_the_test() {
    let message = failure(async {
        let client = TestClient::new().connect(&server()).await;
        client.tool("boook", ()).await;
    });
    let message = message.await;
    assert!(message.starts_with("`boook` was not answered in 2026-07-28: "), "{message}");
}

#[tokio::test(start_paused = true)]
async fn changes_are_received_in_both_eras() {
    let server = server();
    TestClient::new()
        .both_eras(&server, async |client| {
            client.subscribe("desk://bell").await.unwrap();
            server.resource_updated("desk://bell");
            assert_eq!(client.next_change().await, Change::Resource("desk://bell".into()));
            server.add_tool(tool("late", || async { "" })).unwrap();
            assert_eq!(client.next_change().await, Change::Tools);
            assert!(server.remove_tool("late"));
            assert_eq!(client.next_change().await, Change::Tools);
        })
        .await;
    let message = failure(async {
        let client = TestClient::new().connect(&server).await;
        client.next_change().await;
    });
    assert_eq!(message.await, "the server reported no change in 2026-07-28");
}

#[derive(Deserialize, JsonSchema)]
struct Trip {
    /// Where to.
    to: String,
    /// How many days; a week, if nothing is said.
    days: Option<u8>,
}

#[tokio::test(start_paused = true)]
async fn a_catalogue_snapshot_contains_everything() {
    let travel = |Args(trip): Args<Trip>| async move { format!("{} {:?}", trip.to, trip.days) };
    let server = Server::new("travel", "2.0.0")
        .title("Travel")
        .instructions("Ask first.\n\nThen go.")
        .tool(tool("plan", travel).description("Plans a trip.\nSlowly.").read_only())
        .prompt(prompt("pack", || async { String::new() }).argument("to", "Where to."))
        .resource(resource("travel://map", "map", || async { "" }).mime_type("text/plain"))
        .template(template("travel://{city}", "city", || async { "" }));
    let catalogue = CatalogueSnapshot::of(&server).await;
    catalogue.assert_is(
        r#"
server travel 2.0.0
  title: "Travel"
  instructions:
  | Ask first.
  |
  | Then go.

tool plan
  | Plans a trip.
  | Slowly.
  annotations: {"readOnlyHint": true}
  inputSchema: {
    "properties": {
      "days": {
        "description": "How many days; a week, if nothing is said.",
        "format": "uint8",
        "maximum": 255,
        "minimum": 0,
        "type": ["integer", "null"]
      },
      "to": {"description": "Where to.", "type": "string"}
    },
    "required": ["to"],
    "title": "Trip",
    "type": "object"
  }

prompt pack
  arguments: [{"description": "Where to.", "name": "to", "required": true}]

resource travel://map
  mimeType: "text/plain"
  name: "map"

template travel://{city}
  name: "city"
"#,
    );
    let message = failure(async { catalogue.assert_is(&catalogue.as_str().replace("Slowly", "Fast")) });
    let message = message.await;
    assert!(message.contains("  tool plan\n    | Plans a trip.\n-   | Fast.\n+   | Slowly.\n"), "{message}");
}
