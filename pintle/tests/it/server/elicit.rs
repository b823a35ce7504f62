//! Asking a user for a type.

use std::collections::BTreeSet;

use pintle::{
    Server,
    server::{AskError, Cx, Elicited, Field, Form, ToolError, tool},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::eras::{Client, R3, R4, WITH_FORMS, each};

/// Where to.
#[expect(dead_code, reason = "it is printed")]
#[derive(Debug, Deserialize, JsonSchema)]
struct Trip {
    /// The town.
    to: String,
    #[schemars(range(min = 1, max = 9))]
    seats: u8,
    class: Option<Class>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Extras {
    #[schemars(length(max = 2))]
    extras: BTreeSet<Extra>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Class {
    /// Cheap and narrow
    Second,
    /// Wide and dear
    First,
}

#[derive(Debug, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd)]
#[serde(rename_all = "lowercase")]
enum Extra {
    Meal,
    Bike,
}

async fn book(cx: Cx) -> Result<String, ToolError> {
    Ok(match cx.elicit::<Trip>("trip", "Where to?").await? {
        Elicited::Accept(trip) => format!("{trip:?}"),
        Elicited::Decline => "declined".to_owned(),
        Elicited::Cancel => "cancelled".to_owned(),
    })
}

fn server() -> Server {
    Server::new("trips", "1.0.0").tool(tool("book", book).asks::<Trip>())
}

#[tokio::test]
async fn a_form_is_asked_for_and_read_in_every_revision_that_has_forms() {
    each(&server(), &WITH_FORMS, json!({"elicitation": {}}), async |client: &mut Client| {
        let revision = client.revision;
        client.answer = Box::new(move |method, params| {
            assert_eq!(method, "elicitation/create");
            assert_eq!(params["message"], "Where to?");
            let form = &params["requestedSchema"];
            assert_eq!(form["properties"]["to"], json!({"type": "string", "description": "The town."}));
            assert_eq!(form["required"], json!(["to", "seats"]));
            let class = &form["properties"]["class"];
            // One revision has titles in another place.
            match revision {
                R3 => assert_eq!(class["enumNames"], json!(["Cheap and narrow", "Wide and dear"])),
                _ => assert_eq!(class["oneOf"][0], json!({"const": "second", "title": "Cheap and narrow"})),
            }
            json!({"action": "accept", "content": {"to": "Oslo", "seats": 2, "class": "first"}})
        });
        let notified = client.tool("book").await;
        assert_eq!(notified, r#"Trip { to: "Oslo", seats: 2, class: Some(First) }"#);
        for (action, message) in [("decline", "declined"), ("cancel", "cancelled")] {
            client.answer = Box::new(move |_, _| json!({"action": action}));
            assert_eq!(client.tool("book").await, message);
        }
    })
    .await;
}

#[tokio::test]
async fn several_of_an_enum_where_the_revision_has_words_for_it() {
    let pack = |cx: Cx| async move {
        let extras = cx.elicit::<Extras>("extras", "What else?").await?.accepted();
        Ok::<_, ToolError>(format!("{:?}", extras.map(|extras| extras.extras)))
    };
    let server = Server::new("trips", "1.0.0").tool(tool("pack", pack).asks::<Extras>());
    each(&server, &WITH_FORMS, json!({"elicitation": {}}), async |client: &mut Client| {
        client.answer = Box::new(|_, params| {
            let field = &params["requestedSchema"]["properties"]["extras"];
            let items = json!({"type": "string", "enum": ["meal", "bike"]});
            assert_eq!(*field, json!({"type": "array", "items": items, "maxItems": 2}));
            json!({"action": "accept", "content": {"extras": ["meal", "bike"]}})
        });
        let answer = client.call("tools/call", json!({"name": "pack"})).await;
        match client.revision {
            R3 => assert_eq!(
                answer["error"]["message"],
                "the peer's protocol revision cannot express a form field with several choices at once"
            ),
            _ => assert_eq!(answer["result"]["content"][0]["text"], "Some({Meal, Bike})"),
        }
    })
    .await;
}

#[tokio::test]
async fn an_answer_that_does_not_fit_names_the_question_and_the_field() {
    each(&server(), &WITH_FORMS, json!({"elicitation": {}}), async |client: &mut Client| {
        for (content, message) in [
            (json!({"to": "Oslo"}), "the answer to `trip` is invalid: `seats` is missing"),
            (
                json!({"to": "Oslo", "seats": 10}),
                "the answer to `trip` is invalid: `seats` is `10` and may be at most 9",
            ),
            (
                json!({"to": "Oslo", "seats": 1, "class": "third"}),
                "the answer to `trip` is invalid: `class` is `third` and should be one of `second`, `first`",
            ),
        ] {
            let content = content.clone();
            client.answer = Box::new(move |_, _| json!({"action": "accept", "content": content.clone()}));
            let answer = client.call("tools/call", json!({"name": "book"})).await;
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
            assert_eq!(answer["error"]["message"], message);
        }
    })
    .await;
}

#[tokio::test]
async fn a_type_that_is_no_form_is_found_when_the_server_starts_or_when_it_is_asked_for() {
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its shape matters")]
    struct Deep {
        inner: Option<Box<Self>>,
    }
    async fn ask(cx: Cx) -> Result<String, ToolError> {
        cx.elicit::<Deep>("deep", "?").await?;
        Ok("fine".to_owned())
    }
    let registered = Server::new("s", "0").tool(tool("ask", ask).asks::<Deep>());
    let message = registered.check().unwrap_err().to_string();
    assert!(
        message.starts_with("the tool `ask` cannot ask for this: `Deep` cannot be a form: field `inner`"),
        "{message}"
    );
    let unregistered = Server::new("s", "0").tool(tool("ask", ask));
    each(&unregistered, &WITH_FORMS, json!({"elicitation": {}}), async |client: &mut Client| {
        let answer = client.call("tools/call", json!({"name": "ask"})).await;
        assert_eq!(answer["error"]["code"], -32603, "{answer}");
        assert!(
            answer["error"]["message"]
                .as_str()
                .unwrap()
                .starts_with("`Deep` cannot be a form: field `inner`")
        );
    })
    .await;
}

#[tokio::test]
async fn a_form_made_by_hand_comes_back_as_an_object() {
    let pick = |cx: Cx| async move {
        let form = Form::new().field("seat", Field::one_of(["12A", "12C"]).title("Seat"));
        let picked = cx.elicit_form("seat", "Which?", &form).await?.accepted();
        Ok::<_, ToolError>(Value::from(picked.unwrap_or_default()).to_string())
    };
    let server = Server::new("s", "0").tool(tool("pick", pick));
    each(&server, &WITH_FORMS, json!({"elicitation": {}}), async |client: &mut Client| {
        client.answer = Box::new(|_, params| {
            assert_eq!(params["requestedSchema"]["properties"]["seat"]["enum"], json!(["12A", "12C"]));
            json!({"action": "accept", "content": {"seat": "12C"}})
        });
        assert_eq!(client.tool("pick").await, r#"{"seat":"12C"}"#);
    })
    .await;
}

#[tokio::test]
async fn a_client_without_forms_is_not_asked() {
    let careful = |cx: Cx| async move {
        let message = cx.elicit::<Trip>("trip", "Where to?").await.unwrap_err();
        assert!(matches!(message, AskError::CannotAnswer { .. }));
        format!("{}", cx.can_elicit())
    };
    let server = server().tool(tool("careful", careful));
    each(&server, &[R4, crate::support::eras::R5], json!({}), async |client: &mut Client| {
        let answer = client.call("tools/call", json!({"name": "book"})).await;
        assert_eq!(answer["error"]["data"]["requiredCapabilities"], json!({"elicitation": {}}), "{answer}");
        assert_eq!(client.tool("careful").await, "false");
    })
    .await;
}

#[tokio::test]
async fn a_text_of_another_format_does_not_fit_in_any_revision() {
    let server = Server::new("s", "1").tool(tool("ask", |cx: Cx| async move {
        let form = Form::new()
            .field("mail", Field::email())
            .field("page", Field::uri())
            .field("day", Field::date())
            .field("moment", Field::date_time());
        let filled = cx.elicit_form("q", "Who?", &form).await?.accepted().unwrap_or_default();
        Ok::<_, ToolError>(filled["mail"].as_str().unwrap_or_default().to_owned())
    }));
    let good = json!({"mail": "ann@example.com", "page": "https://example.com", "day": "2026-07-28",
        "moment": "2026-07-28T12:00:00Z"});
    let bad =
        [("mail", "ann"), ("page", "example.com"), ("day", "28.7.2026"), ("moment", "2026-07-28 12:00")];
    each(&server, &WITH_FORMS, json!({"elicitation": {}}), async |client: &mut Client| {
        for wrong in bad.iter().map(Some).chain([None]) {
            let mut content = good.clone();
            if let Some((field, text)) = wrong {
                content[field] = json!(text);
            }
            client.answer = Box::new(move |_, _| json!({"action": "accept", "content": content.clone()}));
            let message =
                client.call("tools/call", json!({"name": "ask", "arguments": {}})).await.to_string();
            match wrong {
                Some((field, _)) => assert!(message.contains(&format!("`{field}` is not a")), "{message}"),
                None => assert!(message.contains("ann@example.com"), "{message}"),
            }
        }
    })
    .await;
}
