use std::sync::{Arc, Mutex};

use pintle::{
    Client, Server,
    client::{Answer, Mode},
};
use serde_json::{Value, json};

use super::commands::read;

const FILE: &str = r#"
    [greet]
    description = "Greets somebody."
    command = ["echo", "Hello", "{name}", "{mood?in a good mood}"]
    arguments = { name = { type = "string", pattern = "^[A-Z]", default = "Ann" }, mood = "boolean?" }
    ask = ["name"]
    confirm = true
"#;

/// Calls the tool of a user who answers, and returns the result and the questions.
async fn call(mode: Mode, arguments: Value, answers: [Option<Value>; 2]) -> (String, Vec<String>) {
    let tools = read(FILE, ".".as_ref()).unwrap();
    let server = tools.routes().into_iter().fold(Server::new("served", "1"), Server::tool);
    let asked = Arc::new(Mutex::new(Vec::new()));
    let client = Client::new("test", "1").mode(mode).on_elicit({
        let (asked, answers) = (asked.clone(), Arc::new(Mutex::new(answers.to_vec())));
        move |question| {
            let schema = serde_json::to_string(&question.requested_schema).unwrap();
            asked.lock().unwrap().push(format!("{} {schema}", question.message));
            let answer = answers.lock().unwrap().remove(0);
            async move { answer.map_or(Answer::Decline, Answer::accept) }
        }
    });
    let client = client.connect(server.in_process().unwrap()).await.unwrap();
    let listed = &client.tools().await.unwrap()[0];
    assert_eq!(listed.input_schema["required"], json!([]), "what is asked for can be left out");
    let result = match client.call_tool("greet", arguments).await {
        Ok(result) => result.text(),
        Err(error) => error.to_string(),
    };
    let asked = asked.lock().unwrap().clone();
    (result, asked)
}

#[tokio::test]
async fn a_user_gives_what_is_missing_and_agrees() {
    for mode in [Mode::Legacy, Mode::Modern] {
        let answers = [Some(json!({"name": "Bob"})), Some(json!({}))];
        let (result, asked) = call(mode, json!({}), answers).await;
        assert_eq!(result, "Hello Bob\n");
        assert!(
            asked[0].contains(r#"needs more to begin. {"#) && asked[0].contains(r#""default":"Ann""#),
            "{asked:?}"
        );
        assert!(asked[1].starts_with("Run `greet`?\n\necho Hello Bob"), "{asked:?}");
        assert_eq!(asked.len(), 2);
    }
}

#[tokio::test]
async fn nothing_runs_without_the_user() {
    let (result, asked) = call(Mode::Legacy, json!({}), [None, None]).await;
    assert!(result.contains("did not give the arguments") && asked.len() == 1, "{result}");
    let (result, asked) = call(Mode::Legacy, json!({}), [Some(json!({"name": "bob"})), None]).await;
    assert!(result.contains("^[A-Z]") && asked.len() == 1, "an answer is checked by the schema: {result}");
    let (result, asked) = call(Mode::Modern, json!({"name": "Bob"}), [None, None]).await;
    assert!(result.contains("does not want `greet` to run") && asked.len() == 1, "{result}");

    let tools = read(FILE, ".".as_ref()).unwrap();
    let server = tools.routes().into_iter().fold(Server::new("served", "1"), Server::tool);
    let client = Client::new("nobody", "1").connect(server.in_process().unwrap()).await.unwrap();
    let refused = client.call_tool("greet", json!({"name": "Bob"})).await;
    assert!(!format!("{refused:?}").contains("Hello"), "a client that cannot ask its user: {refused:?}");
}

#[tokio::test]
async fn a_user_is_shown_all_of_what_would_run() {
    let name = format!("Bob{}\n/etc/passwd", " ".repeat(3_000));
    let (_, asked) = call(Mode::Legacy, json!({"name": name}), [None, None]).await;
    assert!(asked[0].starts_with("Run `greet`?\n\necho Hello 'Bob[3000 spaces]\\n/etc/passwd'"), "{asked:?}");
    let (result, asked) = call(Mode::Legacy, json!({"name": "B".repeat(9_000)}), [None, None]).await;
    assert!(result.contains("call it with shorter arguments") && asked.is_empty(), "{result}");
}

#[test]
fn a_question_that_cannot_be_asked_is_refused_with_what_to_write() {
    for (ask, arguments, expected) in [
        ("name", r#"other = "string""#, "`ask` names `name`, which is no argument: add it"),
        ("name", r#"name = { type = "object" }"#, "an argument of `ask` cannot be asked for"),
    ] {
        let file = format!(
            "[a]\ncommand = [\"echo\", \"{{name?x}}\"]\nask = [\"{ask}\"]\narguments = {{ {arguments} }}"
        );
        let fault = read(&file, ".".as_ref()).unwrap_err().to_string();
        assert!(fault.contains(expected), "{fault}");
    }
}
