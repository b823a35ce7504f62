//! The order of a tool's properties, a prompt's arguments and a form's fields is that of their author: in every revision,
//! on the wire and for both sides.

use std::sync::{Arc, Mutex};

use pintle::{
    Client, Server,
    client::Answer,
    message_log::{Direction, MessageLog, Payload, Redactor},
    proto::Revision,
    server::{Args, Cx, Field, Form, ToolError, prompt, tool},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// In no order that a map would give them.
const ORDER: [&str; 4] = ["zeta", "alpha", "mid", "beta"];

#[derive(Deserialize, JsonSchema, Serialize)]
struct Typed {
    zeta: String,
    alpha: i64,
    mid: Option<Inner>,
    beta: bool,
}

#[derive(Deserialize, JsonSchema, Serialize)]
struct Inner {
    second: String,
    first: String,
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its fields are looked at")]
struct Asked {
    zeta: String,
    /// Chosen from a list of which each revision speaks in other words.
    alpha: Speed,
    mid: Option<i64>,
    beta: bool,
}

#[derive(Deserialize, JsonSchema)]
enum Speed {
    /// By ship
    Slow,
    /// By air
    Fast,
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its fields are looked at")]
struct Texts {
    zeta: String,
    alpha: String,
    mid: String,
    beta: String,
}

const WRITTEN: &str = r#"{"type":"object","properties":{"zeta":{"type":"string"},"alpha":{"type":"integer"},
    "mid":{"type":"object","properties":{"second":{},"first":{}}},"beta":{}},"required":["beta","alpha"]}"#;

/// What each revision lacks is there, so that each older one has all of it reshaped.
fn server() -> Server {
    let form = Form::new()
        .field("zeta", Field::text().default("z"))
        .field("alpha", Field::one_of_titled([("s", "By ship"), ("f", "By air")]))
        .optional("mid", Field::integer())
        .field("beta", Field::boolean());
    Server::new("order", "1")
        .tool(
            tool("typed", |Args(typed): Args<Typed>| async move { pintle::server::Json(typed) })
                .title("Typed")
                .read_only(),
        )
        .tool(tool("written", || async { "" }).title("Written").input_schema(WRITTEN))
        .tool(
            tool("edited", |Args(typed): Args<Typed>| async move { typed.zeta })
                .input(|schema| schema.property("mid", |mid| mid.description("In the middle."))),
        )
        .tool(tool("ask", |cx: Cx| async move {
            cx.elicit::<Asked>("typed", "Typed?").await?;
            Ok::<_, ToolError>("asked")
        }))
        .tool(tool("ask_form", move |cx: Cx| {
            let form = form.clone();
            async move {
                cx.elicit_form("made", "Made by hand?", &form).await?;
                Ok::<_, ToolError>("asked")
            }
        }))
        .prompt(prompt("texts", |Args(_): Args<Texts>| async { "" }))
}

fn names<'a>(names: impl Iterator<Item = &'a String>) -> Vec<&'a str> {
    names.map(String::as_str).collect()
}

/// Where each of these comes in a text, the first time.
fn in_order(text: &str) -> bool {
    ORDER.iter().map(|name| text.find(&format!("\"{name}\":"))).is_sorted() && text.contains("\"beta\":")
}

#[tokio::test(start_paused = true)]
async fn what_an_author_put_in_order_stays_so_in_every_revision() {
    for revision in Revision::all() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let questions = Arc::new(Mutex::new(Vec::new()));
        let log = MessageLog::new({
            let lines = lines.clone();
            move |record| {
                let Payload::Message(text) = record.payload else { panic!("{record}") };
                lines.lock().unwrap().push((record.direction, text.to_owned()));
            }
        });
        let client = Client::new("order", "1").revisions([revision]).on_elicit({
            let questions = questions.clone();
            move |question| {
                let fields = question.requested_schema.properties.iter().map(|(name, _)| name.to_owned());
                questions.lock().unwrap().push(fields.collect::<Vec<_>>());
                async { Answer::Decline }
            }
        });
        let client = client.message_log(log.redactor(Redactor::disabled()));
        let connection = client.connect(server().in_process().unwrap()).await.unwrap();

        let tools = connection.tools().await.unwrap();
        for name in ["typed", "written", "edited"] {
            let tool = tools.iter().find(|tool| tool.name == name).unwrap();
            let Some(Value::Object(properties)) = tool.input_schema.get("properties") else { panic!() };
            assert_eq!(names(properties.keys()), ORDER, "{revision} {name}");
            let printed = serde_json::to_string(&*tool.input_schema).unwrap();
            assert!(in_order(&printed), "{revision} {printed}");
            assert!(printed.find("\"second\":") < printed.find("\"first\":"), "{revision} {printed}");
        }
        let prompts = connection.prompts().await.unwrap();
        let arguments = prompts[0].arguments.as_ref().unwrap();
        assert_eq!(names(arguments.iter().map(|argument| &argument.name)), ORDER, "{revision}");

        // What a tool gives, too: a revision without such results has it as a text.
        let given = json!({"zeta": "z", "alpha": 1, "mid": {"second": "2", "first": "1"}, "beta": true});
        let result = connection.call_tool("typed", given).await.unwrap();
        assert!(in_order(&result.text()), "{revision} {}", result.text());
        if let Some(Value::Object(structured)) = &result.structured_content {
            assert_eq!(names(structured.keys()), ORDER, "{revision}");
        }

        for tool in ["ask", "ask_form"] {
            // Two revisions have no forms.
            let _ = connection.call_tool(tool, json!({})).await;
        }
        let questions = questions.lock().unwrap();
        assert!(questions.iter().all(|fields| *fields == ORDER), "{revision} {questions:?}");

        let mut asked = 0;
        for (direction, line) in &*lines.lock().unwrap() {
            if *direction == Direction::In && line.contains("\"zeta\":") {
                assert!(in_order(line), "{revision} {line}");
                asked += usize::from(line.contains("requestedSchema"));
            }
        }
        assert_eq!(asked, questions.len(), "{revision}");
        assert_eq!(asked, if revision.as_str() < "2025-06-18" { 0 } else { 2 }, "{revision}");
    }
}
