//! A request is answered by the first that has what it names.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use pintle::{
    Server,
    server::{Authenticated, Caller, Cx, Entry, Next, Outcome, ProviderInfo, Question, around, prompt, tool},
    types::schema::{ElicitFormParams, ElicitParams, ElicitSchema},
};
use serde_json::{Value, json};

use super::{Shelf, library};
use crate::support::{
    eras::{ALL, Client, R4, R5, each, not_found},
    line_client::Raw,
};

fn server(library: &Arc<Shelf>) -> Server {
    Server::new("desk", "1").tool(tool("own", || async { "own" })).provider(library.clone())
}

#[tokio::test]
async fn every_kind_of_request_reaches_the_provider_with_its_raw_params() {
    let library = library();
    each(&server(&library), &ALL, json!({}), async |client| {
        let lent = client.call("tools/call", json!({"name": "lend", "arguments": {"a": [1, "x"]}})).await;
        assert_eq!(lent["result"]["content"][0]["text"], r#"library lend {"a":[1,"x"]}"#, "{lent}");
        assert_eq!(lent["result"]["x-number"], 1.5, "an unknown member passes: {lent}");
        // Arguments that no schema would allow are the provider's to judge.
        let odd = client.call("tools/call", json!({"name": "lend", "arguments": 7})).await;
        assert_eq!(odd["result"]["content"][0]["text"], "library lend 7", "{odd}");
        let got = client.call("prompts/get", json!({"name": "summary"})).await;
        assert_eq!(got["result"]["messages"][0]["content"]["text"], "summary", "{got}");
        let read = client.call("resources/read", json!({"uri": "book://1"})).await;
        assert_eq!(read["result"]["contents"][0]["text"], "library", "{read}");
        let complete = json!({"ref": {"type": "ref/prompt", "name": "summary"}, "argument": {"name": "of", "value": ""}});
        let completed = client.call("completion/complete", complete).await;
        assert_eq!(completed["result"]["completion"]["values"][0], "summary!", "{completed}");
        assert_eq!(library.calls().len(), 5);
        assert_eq!(client.tool("own").await, "own");
        assert!(library.calls().is_empty(), "a route of the server is not asked for");
    })
    .await;
}

#[tokio::test]
async fn what_nobody_has_is_unknown_as_without_providers() {
    each(&server(&library()), &ALL, json!({}), async |client| {
        let code = |answer: &Value| answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("{answer}"));
        let unknown = client.call("tools/call", json!({"name": "owm"})).await;
        assert_eq!(code(&unknown), -32602);
        assert_eq!(unknown["error"]["message"], "no such tool: `owm`; did you mean `own`?");
        assert_eq!(code(&client.call("prompts/get", json!({"name": "x"})).await), -32602);
        let unread = client.call("resources/read", json!({"uri": "book://9"})).await;
        assert_eq!(code(&unread), i64::from(not_found(client)), "{unread}");
        let complete =
            json!({"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "of", "value": ""}});
        assert_eq!(code(&client.call("completion/complete", complete).await), -32602);
    })
    .await;
}

#[tokio::test]
async fn the_first_provider_in_order_answers_and_check_names_both() {
    let (one, two) =
        (Arc::new(Shelf::of_tools("one", &["a", "b"])), Arc::new(Shelf::of_tools("two", &["b", "c"])));
    let server = Server::new("desk", "1")
        .tool(tool("c", || async { "own" }))
        .provider(one.clone())
        .provider(two.clone());
    let error = server.check().unwrap_err().to_string();
    assert!(error.contains("two tools are named `b`, one of `one` and one of `two`"), "{error}");
    assert!(error.contains("two tools are named `c`, one of the server itself and one of `two`"), "{error}");
    let free = Server::new("desk", "1").provider(one.clone());
    free.check().unwrap();
    let refused = free.add_provider(two.clone()).unwrap_err().to_string();
    assert!(refused.contains("`b`, one of `one` and one of `two`"), "{refused}");
    each(&free, &[R4, R5], json!({}), async |client| {
        let refused = client.call("tools/call", json!({"name": "c"})).await;
        assert_eq!(refused["error"]["message"], "no such tool: `c`", "it was not added");
        assert_eq!(client.tool("b").await, "one b -");
    })
    .await;
}

#[tokio::test]
async fn filters_rights_and_layers_of_the_server_apply_to_a_provider() {
    let guarded =
        Arc::new(Shelf { rights: vec!["books"], ..Shelf::of_tools("guarded", &["burn", "secret"]) });
    let seen = Arc::new(Mutex::new(Vec::new()));
    let layered = seen.clone();
    let server = Server::new("desk", "1")
        .provider(guarded.clone())
        .provider(library())
        .filter(|_, entry| !matches!(entry, Entry::Tool(tool) if tool.name == "secret"))
        .layer(&around(move |cx: Cx, next: Next| {
            let seen = layered.clone();
            async move {
                if let Some(target) = cx.target() {
                    seen.lock().unwrap().push(target.name().to_owned());
                }
                next.run(cx).await
            }
        }));
    for revision in [R4, R5] {
        let ann = Caller::new().with(Authenticated::new("ann").rights(|right| right == "books"));
        let mut may = Client::over(Raw::known(&server, ann), revision, json!({})).await;
        assert_eq!(may.tool("burn").await, "guarded burn -");
        let bob = Caller::new().with(Authenticated::new("bob").rights(|_| false));
        let mut may_not = Client::over(Raw::known(&server, bob), revision, json!({})).await;
        let refused = may_not.call("tools/call", json!({"name": "burn"})).await;
        assert_eq!(refused["error"]["message"], "`burn` needs more than the caller may", "{refused}");
        for client in [&mut may, &mut may_not] {
            let hidden = client.call("tools/call", json!({"name": "secret"})).await;
            assert_eq!(hidden["error"]["message"], "no such tool: `secret`", "{hidden}");
            // Filters cannot judge what they do not know.
            let unlisted = client.call("prompts/get", json!({"name": "summary"})).await;
            assert_eq!(unlisted["error"]["message"], "no such prompt: `summary`", "{unlisted}");
        }
        assert_eq!(guarded.calls(), ["tools/call burn"]);
        let seen = std::mem::take(&mut *seen.lock().unwrap());
        assert_eq!(seen, ["burn", "burn", "secret", "summary", "secret", "summary"]);
    }
}

#[tokio::test]
async fn a_state_is_claimed_before_the_provider_runs() {
    /// A provider that asks and counts how often it goes on.
    struct Asking(Arc<AtomicUsize>);

    impl pintle::server::Provider for Asking {
        fn info(&self, caller: Option<&pintle::server::Scope<'_>>) -> ProviderInfo {
            let shelf = Shelf::of_tools("x", &["ask"]);
            ProviderInfo::new("asking", pintle::server::Provider::info(&shelf, caller).capabilities)
        }

        async fn list(
            &self,
            _: Cx,
            _: pintle::server::ListKind,
            _: pintle::server::PageRequest,
        ) -> Result<pintle::server::ProviderPage, pintle::server::RequestError> {
            Ok(pintle::server::ProviderPage::default())
        }

        fn find(
            &self,
            _: &pintle::server::Scope<'_>,
            _: &pintle::server::Target<'_>,
        ) -> pintle::server::Lookup {
            pintle::server::ProvidedEntry::unlisted().into()
        }

        async fn handle(&self, cx: Cx) -> Outcome {
            let schema: ElicitSchema =
                serde_json::from_value(json!({"type": "object", "properties": {}})).unwrap();
            let form = ElicitParams::Form(ElicitFormParams::new("Sure?", schema));
            cx.ask("sure", Question::Elicit(Box::new(form))).await.unwrap();
            let number = self.0.fetch_add(1, Ordering::SeqCst) + 1;
            let result = json!({"content": [{"type": "text", "text": number.to_string()}]});
            Outcome::Complete(pintle::types::RawObject::from_serialize(&result).unwrap().into())
        }
    }

    let runs = Arc::new(AtomicUsize::new(0));
    let server = Server::new("desk", "1").provider(Asking(runs.clone()));
    let mut client = Client::open(&server, R5, json!({"elicitation": {}})).await;
    let id = client.send("tools/call", json!({"name": "ask"})).await;
    let asked = client.until(id).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let answers = json!({"sure": {"action": "accept", "content": {}}});
    let again =
        json!({"name": "ask", "requestState": asked["result"]["requestState"], "inputResponses": answers});
    let mut replies = Vec::new();
    for _ in 0..2 {
        let id = client.send("tools/call", again.clone()).await;
        replies.push(client.until(id).await["result"]["content"][0]["text"].clone());
    }
    assert_eq!(replies, ["1", "1"], "the second use gets the reply of the first");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_broken_reference_fails_its_call_only() {
    let server = Server::new("desk", "1")
        .provider(library())
        .prompt(prompt("own", || async { "own" }))
        .layer(&around(|cx: Cx, next: Next| async move { next.run(cx).await }));
    each(&server, &[R4, R5], json!({}), async |client| {
        let broken = client.call("completion/complete", json!({"ref": 1})).await;
        assert!(broken["error"]["code"].is_i64(), "{broken}");
        assert_eq!(client.tool("lend").await, "library lend -");
    })
    .await;
}
