//! `#[pintle::prompt]` on functions and methods.

use std::sync::Arc;

use pintle::{
    Server,
    server::{Args, Cx, Partial, PromptArguments, RequestError, State},
    types::schema::{Icon, PromptMessage},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::eras::{ALL, Client, R4, R5, each};

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Tone {
    #[default]
    Kind,
    Strict,
}

async fn languages(typed: Partial) -> Vec<&'static str> {
    ["Go", "Rust"].into_iter().filter(|name| name.starts_with(&typed.value)).collect()
}

/// Reviews code.
#[pintle::prompt(title = "Review", icon = Icon::new("https://example.com/i.png"))]
async fn review(
    cx: Cx,
    /// The code.
    code: String,
    State(sign): State<char>,
    /// What it is written in.
    #[arg(complete = languages)]
    language: Option<String>,
    #[arg(default)] tone: Tone,
    #[arg(default = 3, maximum = 10, rename = "max", title = "At most")] remarks: u8,
) -> Result<String, RequestError> {
    if code.is_empty() {
        return Err(RequestError::bad_request("there is no code"));
    }
    Ok(format!("{sign} {} {code} {language:?} {tone:?} {remarks}", cx.method()))
}

#[derive(Deserialize, JsonSchema)]
struct Word {
    word: String,
}

#[pintle::prompt(name = "define", description = "Says what a word means.")]
fn meaning(Args(Word { word }): Args<Word>, given: PromptArguments) -> Vec<PromptMessage> {
    vec![PromptMessage::user(format!("What is {word}?")), PromptMessage::assistant(given["word"].clone())]
}

async fn get(client: &mut Client, name: &str, arguments: Value) -> Value {
    let answer = client.call("prompts/get", json!({"name": name, "arguments": arguments})).await;
    match answer.get("error") {
        Some(error) => {
            assert_eq!(error["code"], -32602, "{error}");
            error["message"].clone()
        }
        None => answer["result"]["messages"][0]["content"]["text"].clone(),
    }
}

#[tokio::test]
async fn parameters_are_arguments_and_docs_are_descriptions() {
    let server = Server::new("s", "0").with_state('!').routes(pintle::routes![review, meaning]);
    each(&server, &[R4, R5], json!({}), async |client: &mut Client| {
        let listed = client.call("prompts/list", json!({})).await["result"]["prompts"].clone();
        assert_eq!(
            listed,
            json!([
                {
                    "name": "review", "title": "Review", "description": "Reviews code.",
                    "icons": [{"src": "https://example.com/i.png"}],
                    "arguments": [
                        {"name": "code", "description": "The code.", "required": true},
                        {"name": "language", "description": "What it is written in.", "required": false},
                        {"name": "tone", "required": false},
                        {"name": "max", "title": "At most", "required": false},
                    ]
                },
                {
                    "name": "define", "description": "Says what a word means.",
                    "arguments": [{"name": "word", "required": true}]
                }
            ])
        );
    })
    .await;
}

#[tokio::test]
async fn it_is_filled_in_by_clients_of_every_revision() {
    let server = Server::new("s", "0").with_state('!').routes(pintle::routes![review, meaning]);
    each(&server, &ALL, json!({}), async |client: &mut Client| {
        assert_eq!(get(client, "review", json!({"code": "x"})).await, "! prompts/get x None Kind 3");
        let all = json!({"code": "x", "language": "Go", "tone": "strict", "max": "10"});
        assert_eq!(get(client, "review", all).await, "! prompts/get x Some(\"Go\") Strict 10");
        assert_eq!(get(client, "review", json!({"code": ""})).await, "there is no code");
        assert_eq!(get(client, "review", json!({})).await, "the prompt `review` needs `code`");
        assert_eq!(
            get(client, "review", json!({"code": "x", "tone": "strct"})).await,
            "argument `tone`: `strct` is not `kind` or `strict`: did you mean `strict`?"
        );
        #[cfg(feature = "validation")]
        assert_eq!(
            get(client, "review", json!({"code": "x", "max": "11"})).await,
            "`/max` should be at most 10, but is `11`\ncorrect it and try again"
        );
        assert_eq!(get(client, "define", json!({"word": "pintle"})).await, "What is pintle?");
        for (name, value, values) in [("language", "R", json!(["Rust"])), ("tone", "k", json!(["kind"]))] {
            let params = json!({"ref": {"type": "ref/prompt", "name": "review"}, "argument": {"name": name, "value": value}});
            let answer = client.call("completion/complete", params).await;
            assert_eq!(answer["result"]["completion"]["values"], values, "{name}: {answer}");
        }
    })
    .await;
}

#[test]
fn the_function_stays_a_function() {
    let given = PromptArguments::from([("word".to_owned(), "b".to_owned())]);
    let messages = meaning(Args(Word { word: "a".into() }), given);
    assert_eq!(messages[1], PromptMessage::assistant("b"));
}

struct Shelf(Vec<String>);

#[pintle::handlers]
impl Shelf {
    /// Recommends a book.
    #[prompt]
    async fn recommend(&self, #[arg(complete = Self::moods)] mood: String, _cx: Cx) -> String {
        tokio::task::yield_now().await;
        format!("Which of {} is {mood}?", self.0.join(", "))
    }

    #[resource("shelf://{number}", mime_type = "text/plain")]
    fn book(&self, number: usize) -> Option<String> {
        self.0.get(number).cloned()
    }

    /// All of them.
    #[pintle::resource("shelf://all", name = "shelf")]
    async fn all(&self) -> String {
        self.0.join("\n")
    }

    #[tool(read_only)]
    async fn count(&self) -> usize {
        self.0.len()
    }

    async fn moods(_: Partial) -> Vec<&'static str> {
        vec!["merry", "sad"]
    }
}

#[tokio::test]
async fn methods_of_one_value_are_all_kinds() {
    let shelf = Arc::new(Shelf(vec!["Emma".into(), "Ivanhoe".into()]));
    let server = Server::new("s", "0").routes(shelf.routes());
    each(&server, &ALL, json!({}), async |client: &mut Client| {
        assert_eq!(
            get(client, "recommend", json!({"mood": "merry"})).await,
            "Which of Emma, Ivanhoe is merry?"
        );
        assert_eq!(client.tool("count").await, "2");
        let mut read = async |uri: &str| client.call("resources/read", json!({"uri": uri})).await;
        assert_eq!(
            read("shelf://1").await["result"]["contents"],
            json!([{"uri": "shelf://1", "mimeType": "text/plain", "text": "Ivanhoe"}])
        );
        assert_eq!(read("shelf://all").await["result"]["contents"][0]["text"], "Emma\nIvanhoe");
        assert_eq!(read("shelf://2").await["error"]["data"], json!({"uri": "shelf://2"}));
        let params = json!({"ref": {"type": "ref/prompt", "name": "recommend"}, "argument": {"name": "mood", "value": ""}});
        let answer = client.call("completion/complete", params).await;
        assert_eq!(answer["result"]["completion"]["values"], json!(["merry", "sad"]));
    })
    .await;
    assert_eq!(shelf.book(0).as_deref(), Some("Emma"));
}
