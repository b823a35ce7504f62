//! Completing what is being typed.

use pintle::{
    Server, Suggestion,
    server::{Args, Cx, Partial, PromptArguments, State, Values, prompt, template, tool},
    types::{
        Meta,
        schema::{CompletionReference, PromptReference},
    },
};
use serde_json::{Value, json};

use crate::support::eras::{ALL, Client, each};

fn server() -> Server {
    let towns = |partial: Partial| async move {
        let country = partial.context.get("country").cloned().unwrap_or_default();
        (0..250).map(|n| format!("{}{country}{n}", partial.value)).collect::<Vec<_>>()
    };
    let travel = prompt("travel", || async { "Go.".to_owned() })
        .argument("mood", "How it should be.")
        .optional("town", "Where.")
        .optional("plain", "Nobody completes it.")
        .optional("broken", "Its completer fails.")
        .optional("worse", "Its completer panics.")
        .argument_values("mood", ["Merry", "melancholy", "calm"])
        .complete("town", towns)
        .complete("broken", |_: Partial| async { Err::<Vec<String>, _>("no database") })
        .complete("worse", |partial: Partial| async move {
            assert!(partial.value == "never", "boom");
            Vec::<String>::new()
        });
    let notes = template("note://{title}", "note", || async { "text" })
        .complete("title", |_: Partial| async { Values::new(["a", "b"]).total(17) });
    let schema = json!({"type": "object", "$defs": {"Size": {"enum": ["small", "large", null]}}, "properties": {
        "size": {"$ref": "#/$defs/Size"},
        "gift": {"type": ["boolean", "null"]},
        "colours": {"type": "array", "items": {"oneOf": [{"const": "red"}, {"const": "rose"}, {"const": "blue"}]}},
        "text": {"type": "string"},
    }});
    let order = tool("order", || async { "" }).input_schema(schema);
    Server::new("s", "0").prompt(travel).template(notes).tool(order)
}

async fn complete(client: &mut Client, reference: Value, name: &str, value: &str) -> Value {
    let params = json!({"ref": reference, "argument": {"name": name, "value": value},
        "context": {"arguments": {"country": "-no-"}}});
    let answer = client.call("completion/complete", params).await;
    if answer.get("error").is_some() {
        answer["error"].clone()
    } else {
        answer["result"]["completion"].clone()
    }
}

#[tokio::test]
async fn arguments_of_prompts_and_variables_of_templates() {
    each(&server(), &ALL, json!({}), async |client: &mut Client| {
        let travel = || json!({"type": "ref/prompt", "name": "travel"});
        assert_eq!(
            complete(client, travel(), "mood", "me").await,
            json!({"values": ["Merry", "melancholy"], "total": 2, "hasMore": false})
        );
        let towns = complete(client, travel(), "town", "x").await;
        assert_eq!(towns["values"].as_array().unwrap().len(), 100);
        assert_eq!(towns["values"][7], "x-no-7");
        assert_eq!((&towns["total"], &towns["hasMore"]), (&json!(250), &json!(true)));
        let none = json!({"values": [], "total": 0, "hasMore": false});
        for name in ["plain", "broken", "worse"] {
            assert_eq!(complete(client, travel(), name, "").await, none, "{name}");
        }
        let notes = json!({"type": "ref/resource", "uri": "note://{title}"});
        assert_eq!(
            complete(client, notes, "title", "").await,
            json!({"values": ["a", "b"], "total": 17, "hasMore": true})
        );
        for (reference, name, text) in [
            (travel(), "typo", "the prompt `travel` has no argument `typo`"),
            (
                json!({"type": "ref/prompt", "name": "nope"}),
                "mood",
                "`ref` names nothing that this server has",
            ),
            (
                json!({"type": "ref/resource", "uri": "x://y"}),
                "z",
                "`ref` names nothing that this server has",
            ),
            (
                json!({"type": "ref/tool", "name": "order"}),
                "size",
                "`ref` names nothing that this server has",
            ),
        ] {
            let error = complete(client, reference, name, "").await;
            assert_eq!((&error["code"], &error["message"]), (&json!(-32602), &json!(text)));
        }
    })
    .await;
}

#[tokio::test]
async fn arguments_of_tools_are_completed_where_it_is_enabled() {
    each(&server().tool_completion(), &ALL, json!({}), async |client: &mut Client| {
        for (name, value, values) in [
            ("size", "", json!(["small", "large"])),
            ("gift", "t", json!(["true"])),
            ("colours", "r", json!(["red", "rose"])),
            ("text", "", json!([])),
        ] {
            let found = complete(client, json!({"type": "ref/tool", "name": "order"}), name, value).await;
            assert_eq!(found["values"], values, "{name}");
        }
    })
    .await;
}

#[tokio::test]
async fn values_that_are_not_allowed_are_refused() {
    each(&server(), &ALL, json!({}), async |client: &mut Client| {
        let params = json!({"name": "travel", "arguments": {"mood": "grim"}});
        let error = client.call("prompts/get", params).await["error"].clone();
        assert_eq!(error["code"], -32602);
        assert_eq!(error["message"], "`mood` is `grim` and should be one of `Merry`, `melancholy`, `calm`");
        let error = client.call("prompts/get", json!({"name": "travel"})).await["error"].clone();
        assert_eq!(error["message"], "the prompt `travel` needs `mood`");
        let fine = client.call("prompts/get", json!({"name": "travel", "arguments": {"mood": "calm"}})).await;
        assert_eq!(fine["result"]["messages"][0]["content"]["text"], "Go.");
    })
    .await;
}

#[tokio::test]
async fn a_completer_takes_state_and_the_call() {
    async fn towns(cx: Cx, typed: Partial, State(known): State<Vec<&'static str>>) -> Values {
        let mut meta = Meta::new();
        meta.insert("com.example/method", cx.method());
        Values::new(known.into_iter().filter(|town| town.starts_with(&typed.value))).meta(meta)
    }
    let travel = || {
        prompt("travel", |_: PromptArguments| async { "" }).argument("town", "Where.").complete("town", towns)
    };
    let error = Server::new("s", "0").prompt(travel()).check().unwrap_err().to_string();
    assert!(error.contains("the prompt `travel` wants `State<"), "{error}");
    let server = Server::new("s", "0").with_state(vec!["Oslo", "Bergen", "Berlin"]).prompt(travel());
    each(&server, &ALL, json!({}), async |client: &mut Client| {
        let params = json!({
            "ref": {"type": "ref/prompt", "name": "travel"},
            "argument": {"name": "town", "value": "Ber"},
        });
        let answer = client.call("completion/complete", params).await;
        assert_eq!(answer["result"]["completion"]["values"], json!(["Bergen", "Berlin"]), "{answer}");
        assert_eq!(answer["result"]["_meta"]["com.example/method"], "completion/complete", "{answer}");
    })
    .await;
}

#[tokio::test]
async fn values_have_labels_and_remarks_for_clients_that_read_them() {
    let airports = |_: Partial| async {
        let mut meta = Meta::new();
        meta.insert("com.example/source", "gazetteer");
        let oslo = Suggestion::new("OSL").label("Oslo").detail("Norway").kind("airport");
        let all = [oslo, Suggestion::new("OSD")].into_iter();
        Values::suggestions(all.chain((0..200).map(|n| Suggestion::new(n.to_string())))).meta(meta)
    };
    let plain = |_: Partial| async { vec![Suggestion::new("a")] };
    let travel = prompt("travel", |_: PromptArguments| async { "" })
        .argument("from", "Where.")
        .argument("to", "Where.")
        .complete("from", airports)
        .complete("to", plain);
    let server = Server::new("s", "0").prompt(travel);
    each(&server, &ALL, json!({}), async |client: &mut Client| {
        let reference = json!({"type": "ref/prompt", "name": "travel"});
        let params = json!({"ref": reference, "argument": {"name": "from", "value": ""}});
        let result = client.call("completion/complete", params).await["result"].clone();
        assert_eq!(
            (&result["completion"]["values"][0], &result["completion"]["total"]),
            (&json!("OSL"), &json!(202))
        );
        assert_eq!(result["_meta"]["com.example/source"], "gazetteer");
        let details = result["_meta"]["dev.pintle/suggestions"].as_array().unwrap();
        assert_eq!(details.len(), 100, "as many as values");
        assert_eq!(
            details[..2],
            [json!({"label": "Oslo", "detail": "Norway", "kind": "airport"}), json!({})]
        );
        let params = json!({"ref": reference, "argument": {"name": "to", "value": ""}});
        let result = client.call("completion/complete", params).await["result"].clone();
        assert_eq!(result["completion"]["values"], json!(["a"]));
        assert_eq!(result["_meta"]["dev.pintle/suggestions"], Value::Null, "there is nothing to read");
    })
    .await;
    let connection = pintle::Client::new("c", "0").connect(server.in_process().unwrap()).await.unwrap();
    let reference = || CompletionReference::Prompt(PromptReference::new("travel"));
    let found = connection.suggestions(reference(), "from", "", []).await.unwrap();
    assert_eq!(found.len(), 100);
    assert_eq!(
        found[..2],
        [Suggestion::new("OSL").label("Oslo").detail("Norway").kind("airport"), Suggestion::new("OSD")]
    );
    assert_eq!(connection.suggestions(reference(), "to", "", []).await.unwrap(), [Suggestion::new("a")]);
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

#[test]
fn what_a_completer_cannot_take_is_an_error() {
    let wrong = |_: Args<Nothing>| async { vec![""] };
    let route = prompt("p", |_: PromptArguments| async { "" }).argument("a", "A.").complete("a", wrong);
    assert_eq!(
        Server::new("s", "0").prompt(route).check().unwrap_err().to_string(),
        "the completer of `a` has nothing for `Args`: take `Partial`, `State<S>` or `Cx`"
    );
    let error = Server::new("s", "0").tool(tool("t", |_: Partial| async { "" })).check().unwrap_err();
    assert_eq!(error.to_string(), "the tool `t` has nothing for `Partial`: take `Args<T>`");
}
