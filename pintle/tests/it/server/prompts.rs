//! Prompts over types: what the handler takes is what can be filled in, and everything comes as text.

use pintle::{
    Server,
    server::{Args, Arguments, Cx, PromptArguments, RequestError, State, Vars, prompt},
    types::schema::{ContentBlock, GetPromptResult, PromptMessage, TextContent},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::eras::{ALL, Client, R3, each};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Tone {
    Kind,
    Strict,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "printed")]
struct Review {
    /// What to look at.
    #[schemars(title = "Subject", length(min = 2))]
    subject: String,
    tone: Tone,
    /// How many remarks.
    #[serde(default)]
    count: u8,
    loud: Option<bool>,
    #[serde(rename = "by")]
    author: Option<String>,
}

fn server() -> Server {
    let review = |State(sign): State<char>, cx: Cx, Args(review): Args<Review>| async move {
        format!("{sign} {} {review:?}", cx.method())
    };
    Server::new("s", "0").with_state('!').prompt(prompt("review", review).description("Reviews something."))
}

async fn get(client: &mut Client, arguments: Value) -> Value {
    let answer = client.call("prompts/get", json!({"name": "review", "arguments": arguments})).await;
    match answer.get("error") {
        Some(error) => {
            assert_eq!(error["code"], -32602, "{error}");
            error["message"].clone()
        }
        None => answer["result"]["messages"][0]["content"]["text"].clone(),
    }
}

#[tokio::test]
async fn fields_are_arguments_in_their_order() {
    each(&server(), &ALL, json!({}), async |client: &mut Client| {
        let listed = client.call("prompts/list", json!({})).await["result"]["prompts"][0].clone();
        let mut subject = json!({"name": "subject", "description": "What to look at.", "required": true});
        if ALL.iter().position(|known| *known == client.revision) >= ALL.iter().position(|known| *known == R3)
        {
            subject["title"] = "Subject".into();
        }
        assert_eq!(
            listed["arguments"],
            json!([
                subject,
                {"name": "tone", "required": true},
                {"name": "count", "description": "How many remarks.", "required": false},
                {"name": "loud", "required": false},
                {"name": "by", "required": false},
            ])
        );
    })
    .await;
}

#[tokio::test]
async fn texts_become_what_the_fields_are() {
    each(&server(), &ALL, json!({}), async |client: &mut Client| {
        let all = json!({"subject": "it", "tone": "strict", "count": "255", "loud": "true", "by": ""});
        assert_eq!(
            get(client, all).await,
            r#"! prompts/get Review { subject: "it", tone: Strict, count: 255, loud: Some(true), author: Some("") }"#
        );
        // A form that was not filled in sends empty texts.
        let few = json!({"subject": "it", "tone": "kind", "count": "", "loud": "", "more": "x"});
        assert_eq!(
            get(client, few).await,
            r#"! prompts/get Review { subject: "it", tone: Kind, count: 0, loud: None, author: None }"#
        );
    })
    .await;
}

#[tokio::test]
async fn what_does_not_fit_is_named_with_what_was_expected_and_what_came() {
    each(&server(), &ALL, json!({}), async |client: &mut Client| {
        for (arguments, detail) in [
            (json!({}), "the prompt `review` needs `subject` and `tone`"),
            (
                json!({"subject": "it", "tnoe": "kind"}),
                "the prompt `review` needs `tone`; `tnoe` is not known: did you mean `tone`?",
            ),
            (
                json!({"subject": "it", "tone": "strickt"}),
                "argument `tone`: `strickt` is not `kind` or `strict`: did you mean `strict`?",
            ),
            (
                json!({"subject": "it", "tone": ""}),
                "argument `tone`: it is empty and should be `kind` or `strict`",
            ),
            (
                json!({"subject": "it", "tone": "kind", "count": "256"}),
                "argument `count`: `256` is not a whole number from 0 to 255",
            ),
            (
                json!({"subject": "it", "tone": "kind", "loud": "yes"}),
                "argument `loud`: `yes` is not `true` or `false`",
            ),
            (
                json!({"subject": "it", "tone": "kind", "count": 3}),
                "argument `count` should be a string, but is `3`: did you mean `\"3\"`?",
            ),
            (
                json!({"subject": ["it"], "tone": "kind"}),
                "argument `subject` should be a string: prompts take texts only",
            ),
        ] {
            assert_eq!(get(client, arguments).await, detail);
        }
        let detail = get(client, json!([])).await;
        let detail = detail.as_str().unwrap();
        assert!(
            detail.starts_with("`arguments` of `prompts/get` should be an object of strings"),
            "{detail}"
        );
    })
    .await;
}

#[cfg(feature = "validation")]
#[tokio::test]
async fn what_the_author_asked_for_besides_is_checked() {
    each(&server(), &ALL, json!({}), async |client: &mut Client| {
        assert_eq!(
            get(client, json!({"subject": "i", "tone": "kind"})).await,
            "`/subject` should be a string of at least 2 characters, but is `\"i\"`\ncorrect it and try again"
        );
    })
    .await;
}

#[tokio::test]
async fn enums_and_booleans_complete_themselves() {
    each(&server(), &ALL, json!({}), async |client: &mut Client| {
        for (name, value, values) in [
            ("tone", "", json!(["kind", "strict"])),
            ("tone", "S", json!(["strict"])),
            ("loud", "f", json!(["false"])),
            ("subject", "", json!([])),
        ] {
            let params = json!({"ref": {"type": "ref/prompt", "name": "review"}, "argument": {"name": name, "value": value}});
            let answer = client.call("completion/complete", params).await;
            assert_eq!(answer["result"]["completion"]["values"], values, "{name}: {answer}");
        }
    })
    .await;
}

#[tokio::test]
async fn every_kind_of_result() {
    let message = |text: &str| json!({"role": "user", "content": {"type": "text", "text": text}});
    let both = || async { vec![PromptMessage::user("a"), PromptMessage::assistant("b")] };
    let whole = || async {
        let mut result = GetPromptResult::new(vec![PromptMessage::user("whole")]);
        result.description = Some("All of it.".into());
        result
    };
    let failing = || async { "x".parse::<u8>().map(|_| "never") };
    let refusing = || async { Err::<String, _>(RequestError::bad_request("not today")) };
    let raw = |Arguments(arguments): Arguments, given: PromptArguments| async move {
        format!("{} {}", arguments.as_str(), given["a"])
    };
    let server = Server::new("s", "0")
        .prompt(prompt("str", || async { "str" }))
        .prompt(prompt("message", || async { PromptMessage::user("message") }))
        .prompt(prompt("block", || async { ContentBlock::Text(TextContent::new("block")) }))
        .prompt(prompt("both", both))
        .prompt(prompt("whole", whole))
        .prompt(prompt("failing", failing))
        .prompt(prompt("refusing", refusing))
        .prompt(prompt("raw", raw).argument("a", "Anything."));
    each(&server, &ALL, json!({}), async |client: &mut Client| {
        let mut get = async |name: &str| {
            client.call("prompts/get", json!({"name": name, "arguments": {"a": "b"}})).await
        };
        for name in ["str", "message", "block"] {
            assert_eq!(get(name).await["result"]["messages"], json!([message(name)]));
        }
        assert_eq!(get("both").await["result"]["messages"][1]["role"], "assistant");
        assert_eq!(get("whole").await["result"]["description"], "All of it.");
        let failed = get("failing").await["error"].clone();
        assert_eq!(
            (&failed["code"], &failed["message"]),
            (&json!(-32603), &json!("invalid digit found in string"))
        );
        let refused = get("refusing").await["error"].clone();
        assert_eq!((&refused["code"], &refused["message"]), (&json!(-32602), &json!("not today")));
        assert_eq!(get("raw").await["result"]["messages"], json!([message(r#"{"a":"b"} b"#)]));
    })
    .await;
}

#[test]
fn invalid_prompts_are_reported_before_the_first_request() {
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "nobody reads it")]
    struct Deep {
        point: Point,
        list: Vec<String>,
    }
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "nobody reads it")]
    struct Point {
        x: i64,
    }
    let detail = |route| Server::new("s", "0").prompt(route).check().unwrap_err().to_string();
    let unreadable = ["point", "list"].map(|name| {
        format!(
            "the prompt `p` takes `{name}`, which cannot be read from a text: make it a `String`, a number, a `bool`, an enum, \
             or an `Option` of one"
        )
    });
    assert_eq!(detail(prompt("p", |_: Args<Deep>| async { "" })), unreadable.join("\n"));
    assert_eq!(
        detail(prompt("p", |_: Vars<String>| async { "" })),
        "the prompt `p` has nothing for `Vars`: take `Args<T>`"
    );
    assert_eq!(
        detail(prompt("p", |_: Args<Point>, _: Args<Point>| async { "" })),
        "`p` takes `Args` twice: put all fields into one struct"
    );
    assert_eq!(
        detail(prompt("p", |_: State<u8>| async { "" })),
        "the prompt `p` wants `State<u8>`: give the server one with `with_state`"
    );
}
