//! Rules about arguments: what is judged is what the server behind gets, and has one reading.

use std::sync::{Arc, Mutex};

use pintle::{
    Server,
    server::{
        Cx, Decision, EntryEdit, Gate, GateRequest, ListKind, Lookup, Mount, Outcome, PageRequest, Prefix,
        PromptArguments, Provider, ProviderInfo, ProviderPage, RequestError, Rules, Scope, Target,
        ToolSearch, Transform, prompt,
    },
    types::schema::{CallToolResult, ServerCapabilities, Tool, ToolsCapability},
};
use serde_json::{Value, json};

use crate::support::{
    eras::{Client, R4, R5},
    line_client::Raw,
};

/// A server behind that converts whatever it gets, as many do: its tool returns the text of its arguments.
#[derive(Clone)]
struct Behind(Value);

impl Behind {
    fn tool(&self) -> Tool {
        serde_json::from_value(json!({"name": "push", "inputSchema": self.0})).unwrap()
    }
}

impl Provider for Behind {
    fn info(&self, _: Option<&Scope<'_>>) -> ProviderInfo {
        let mut capabilities = ServerCapabilities::default();
        capabilities.tools = Some(ToolsCapability::default());
        ProviderInfo::new("git", capabilities)
    }

    async fn list(&self, _: Cx, _: ListKind, _: PageRequest) -> Result<ProviderPage, RequestError> {
        ProviderPage::of([self.tool()])
    }

    fn find(&self, _: &Scope<'_>, target: &Target<'_>) -> Lookup {
        (*target == Target::Tool("push".into())).then(|| self.tool()).into()
    }

    async fn handle(&self, cx: Cx) -> Outcome {
        let arguments = cx.params().get("arguments").unwrap_or("none");
        Outcome::Complete(CallToolResult::raw_text(arguments).into())
    }
}

/// The schema of a tool with these properties.
fn object(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

fn rules(rules: Value) -> Rules {
    Rules::new(serde_json::from_value(json!({ "rules": rules })).unwrap()).unwrap()
}

/// Denies calls with this argument, and allows all others.
fn denying(arguments: Value) -> Rules {
    rules(json!([{"arguments": arguments, "decision": "deny", "reason": "not this"}, {"decision": "allow"}]))
}

/// Allows calls with this argument only.
fn allowing(arguments: Value) -> Rules {
    rules(json!([{"arguments": arguments, "decision": "allow"}]))
}

/// Calls `git_push`. Returns the arguments that the server behind gets, or the message of the refusal.
async fn push(server: &Server, arguments: &str) -> String {
    let mut raw = Raw::new(server);
    raw.open(R4, json!({})).await;
    raw.send_text(format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"git_push","arguments":{arguments}}}}}"#
    ))
    .await;
    let answer = raw.recv().await;
    let text =
        answer["result"]["content"][0]["text"].as_str().or_else(|| answer["error"]["message"].as_str());
    text.unwrap_or_else(|| panic!("{answer}")).to_owned()
}

async fn check(server: &Server, cases: &[(&str, &str)]) {
    for (arguments, expected) in cases {
        let got = push(server, arguments).await;
        let runs = expected.starts_with('{');
        assert!(if runs { got == *expected } else { got.contains(expected) }, "{arguments}: {got}");
    }
}

/// A gate of rules that decides what they explain.
struct Explained(Rules);

impl Gate for Explained {
    fn decide(&self, request: &GateRequest<'_>) -> Decision {
        let (decided, explained) = (self.0.decide(request), self.0.explain_request(request));
        assert_eq!(decided, explained.decision);
        decided
    }
}

fn gated(behind: &Value, rules: Rules) -> Server {
    Server::new("s", "0").mount("git", Behind(behind.clone())).gate(Explained(rules))
}

const UNJUDGED: &str = "cannot be judged";

#[tokio::test]
async fn a_decoy_with_the_dotted_name_has_two_readings() {
    let nested = object(json!({"opts": object(json!({"force": {"type": "boolean"}}))}));
    for schema in [&nested, &json!({"type": "object"})] {
        check(
            &gated(schema, denying(json!({"opts.force": true}))),
            &[
                (r#"{"opts":{"force":true}}"#, "not this"),
                (r#"{"opts.force":false,"opts":{"force":true}}"#, UNJUDGED),
                (r#"{"opts.force":false}"#, UNJUDGED),
                (r#"{"opts":{"force":false},"Opts":{"force":true}}"#, UNJUDGED),
                (r#"{"opts":{"force":false,"FORCE":true}}"#, UNJUDGED),
                (r#"{"opts":"{\"force\":true}"}"#, UNJUDGED),
                (r#"{"opts":{"force":false}}"#, r#"{"opts":{"force":false}}"#),
                ("{}", "{}"),
            ],
        )
        .await;
        check(
            &gated(schema, allowing(json!({"where.kind": "public"}))),
            &[
                (r#"{"where.kind":"public","where":{"kind":"secret"}}"#, UNJUDGED),
                (r#"{"where.kind":"public"}"#, UNJUDGED),
                (r#"{"where":{"kind":"public"}}"#, r#"{"where":{"kind":"public"}}"#),
                (r#"{"where":{"kind":"secret"}}"#, "no such tool"),
            ],
        )
        .await;
    }
    // A tool may have an argument of such a name.
    let dotted = object(json!({"opts.force": {"type": "boolean"}}));
    check(
        &gated(&dotted, denying(json!({"opts.force": true}))),
        &[
            (r#"{"opts.force":true}"#, "not this"),
            (r#"{"opts":{"force":false}}"#, UNJUDGED),
            (r#"{"opts.force":false}"#, r#"{"opts.force":false}"#),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_value_that_the_server_behind_would_convert_is_refused() {
    let wide = json!({"anyOf": [{"type": "boolean"}, {"type": "null"}], "default": null});
    for force in [json!({"type": "boolean"}), json!({}), wide] {
        let server = gated(&object(json!({ "force": force })), denying(json!({"force": true})));
        let cases = [
            (r#"{"force":true}"#, "not this"),
            (r#"{"force":"true"}"#, "send a boolean"),
            (r#"{"force":"yes"}"#, "send a boolean"),
            (r#"{"force":1}"#, "send a boolean"),
            (r#"{"force":[true]}"#, "send a boolean"),
            (r#"{"force":{"value":true}}"#, "send a boolean"),
            (r#"{"force":null}"#, "send a boolean"),
            (r#"{"Force":true}"#, UNJUDGED),
            (r#"{"force":false}"#, r#"{"force":false}"#),
            ("{}", "{}"),
        ];
        check(&server, &cases).await;
    }
    let typed = object(json!({"n": {"type": "integer"}, "mode": {"enum": ["soft", "hard"]}}));
    check(
        &gated(&typed, denying(json!({"n": {"min": 3}}))),
        &[
            (r#"{"n":3}"#, "not this"),
            (r#"{"n":3.0}"#, "not this"),
            (r#"{"n":2}"#, r#"{"n":2}"#),
            (r#"{"n":2.5}"#, "send an integer"),
            (r#"{"n":"4"}"#, "send an integer"),
        ],
    )
    .await;
    check(
        &gated(&typed, denying(json!({"mode": "hard"}))),
        &[
            (r#"{"mode":"hard"}"#, "not this"),
            (r#"{"mode":"HARD"}"#, "send one of"),
            (r#"{"mode":"soft"}"#, r#"{"mode":"soft"}"#),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_tool_that_is_hidden_stays_unknown() {
    let hidden = rules(json!([{"arguments": {"force": true}, "decision": "deny"}, {"decision": "hide"}]));
    let unlisted = rules(json!([
        {"principals": ["ann"], "arguments": {"force": true}, "decision": "deny"},
        {"principals": ["ann"], "decision": "allow"},
    ]));
    for rules in [hidden, unlisted] {
        let server = gated(&object(json!({})), rules);
        check(
            &server,
            &[(r#"{"force":"yes"}"#, "no such tool"), (r#"{"force":1,"force":1}"#, "no such tool")],
        )
        .await;
    }
}

#[tokio::test]
async fn a_missing_argument_has_its_default_which_is_sent() {
    let of = |default: Value| object(json!({"force": {"type": "boolean", "default": default}}));
    check(&gated(&of(json!(false)), denying(json!({"force": false}))), &[("{}", "not this")]).await;
    let server = gated(&of(json!(true)), denying(json!({"force": false})));
    // A number keeps its text.
    check(&server, &[("{}", r#"{"force":true}"#), (r#"{"n":1e2}"#, r#"{"n":1e2,"force":true}"#)]).await;
    // Nobody reads it.
    check(&gated(&of(json!(true)), denying(json!({"other": 1}))), &[("{}", "{}")]).await;
    let referred = json!({"type": "object",
        "properties": {"opts": {"$ref": "#/$defs/Opts"}, "all": {"type": "array", "items": {"$ref": "#/$defs/Opts"}}},
        "$defs": {"Opts": object(json!({"force": {"type": "boolean", "default": true}}))}});
    check(
        &gated(&referred, denying(json!({"opts.force": true}))),
        &[(r#"{"opts":{}}"#, "not this"), (r#"{"opts":{"force":"no"}}"#, "send a boolean")],
    )
    .await;
    check(
        &gated(&referred, denying(json!({"all.force": false}))),
        &[
            (r#"{"all":[{"force":false},{}]}"#, "not this"),
            (r#"{"all":[{"a":1},{"force":true}]}"#, r#"{"all":[{"a":1,"force":true},{"force":true}]}"#),
            (r#"{"all":[]}"#, r#"{"all":[]}"#),
        ],
    )
    .await;
}

/// Nobody knows what the server behind takes in the place of an object that is not there: it may be one with all defaults.
#[tokio::test]
async fn a_member_of_a_missing_object_may_have_its_default_or_none() {
    let inner = object(json!({"force": {"type": "boolean", "default": true}, "n": {"type": "integer"}}));
    let schema = object(json!({"opts": object(json!({"inner": inner}))}));
    let path = |condition: Value| json!({"opts.inner.force": condition});
    let missing = ["{}", r#"{"opts":{}}"#];
    for arguments in missing {
        for denied in [json!(true), json!({"absent": true}), json!({"absent": false}), json!({"not": false})]
        {
            let server = gated(&schema, denying(path(denied)));
            check(&server, &[(arguments, "not this")]).await;
        }
        // Nothing is sent that was not.
        check(&gated(&schema, denying(path(json!(false)))), &[(arguments, arguments)]).await;
        for allowed in [json!(true), json!({"absent": true}), json!({"absent": false}), json!({"not": false})]
        {
            let server = gated(&schema, allowing(path(allowed)));
            check(&server, &[(arguments, "no such tool")]).await;
        }
        // One without a default is not there.
        let server = gated(&schema, allowing(json!({"opts.inner.n": {"absent": true}})));
        check(&server, &[(arguments, arguments)]).await;
    }
    let sent = r#"{"opts":{"inner":{"force":false}}}"#;
    check(&gated(&schema, denying(path(json!(true)))), &[(sent, sent)]).await;
}

/// A provider whose changes can be replaced while it is used, as those of a file are.
#[derive(Clone)]
struct Reloaded(Arc<Mutex<Arc<Transform<Behind>>>>);

impl Reloaded {
    fn current(&self) -> Arc<Transform<Behind>> {
        self.0.lock().unwrap().clone()
    }
}

impl Provider for Reloaded {
    fn info(&self, _: Option<&Scope<'_>>) -> ProviderInfo {
        ProviderInfo::new("git", self.current().info(None).capabilities)
    }

    async fn list(&self, cx: Cx, list: ListKind, page: PageRequest) -> Result<ProviderPage, RequestError> {
        self.current().list(cx, list, page).await
    }

    fn find(&self, scope: &Scope<'_>, target: &Target<'_>) -> Lookup {
        self.current().find(scope, target)
    }

    async fn handle(&self, cx: Cx) -> Outcome {
        self.current().handle(cx).await
    }
}

/// The user agrees to arguments with what is set at that time.
#[tokio::test]
async fn a_call_that_has_changed_while_the_user_was_asked_is_refused() {
    let schema = object(json!({"force": {"type": "boolean"}, "branch": {"type": "string"}}));
    let transform = |edit: EntryEdit| Arc::new(Transform::new(Behind(schema.clone())).tool("push", edit));
    let before = || EntryEdit::new().fix("force", false).default_value("branch", "dev");
    let confirming = rules(json!([{"decision": "confirm"}]));
    let asking = |git: &Reloaded| Server::new("s", "0").mount("git", git.clone()).gate(confirming.clone());
    let inner = |git: &Reloaded| Server::new("o", "0").provider(asking(git));
    let outer = |git: &Reloaded| {
        let within = Server::new("i", "0").mount("git", git.clone());
        Server::new("o", "0").provider(within).gate(confirming.clone())
    };
    let searched = |git: &Reloaded| {
        let within = ToolSearch::new(Server::new("i", "0").mount("git", git.clone()));
        let rules = rules(json!([{"tools": ["git_push"], "decision": "confirm"}, {"decision": "allow"}]));
        Server::new("o", "0").provider(within).gate(rules)
    };
    let sent = r#"{"x":1e2,"force":false,"branch":"dev"}"#;
    for (after, expected) in [
        (before(), sent),
        (EntryEdit::new(), "has changed"),
        (before().fix("force", true), "has changed"),
        (before().default_value("branch", "main"), "has changed"),
        (before().fix("n", 1), "has changed"),
        (before().rename("other"), "has changed"),
    ] {
        for (at, place) in
            [&asking as &dyn Fn(&Reloaded) -> Server, &inner, &outer, &searched].into_iter().enumerate()
        {
            let git = Reloaded(Arc::new(Mutex::new(transform(before()))));
            let mut client = Client::open(&place(&git), R4, json!({"elicitation": {}})).await;
            let changed = transform(after.clone());
            client.answer = Box::new(move |_, params| {
                assert!(!params.to_string().contains("force"), "what is fixed is not shown: {params}");
                *git.0.lock().unwrap() = changed.clone();
                json!({"action": "accept", "content": {}})
            });
            let push = r#"{"name":"git_push","arguments":{"x":1e2}}"#;
            let call = match at {
                3 => format!(r#"{{"name":"call_tool","arguments":{push}}}"#),
                _ => push.to_owned(),
            };
            let done = client.call("tools/call", serde_json::from_str(&call).unwrap()).await;
            let text = done["result"]["content"][0]["text"].as_str();
            let text = text.or_else(|| done["error"]["message"].as_str()).unwrap_or_else(|| panic!("{done}"));
            let sent = text.replace("100.0", "1e2");
            assert!(sent.contains(expected), "{at} {after:?}: {text}");
        }
    }
}

#[tokio::test]
async fn what_a_transform_defaults_for_a_prompt_is_judged() {
    let tone = |arguments: PromptArguments| async move { arguments.get("tone").cloned().unwrap_or_default() };
    let greet = prompt("greet", tone).optional("tone", "How.");
    let polite = EntryEdit::new().default_value("tone", "rude");
    let server = Server::new("o", "0")
        .provider(Transform::new(Server::new("i", "0").prompt(greet)).prompt("greet", polite))
        .gate(denying(json!({"tone": "rude"})));
    for revision in [R4, R5] {
        let mut client = Client::open(&server, revision, json!({})).await;
        let denied = client.call("prompts/get", json!({"name": "greet"})).await;
        assert!(denied["error"]["message"].as_str().is_some_and(|why| why.contains("not this")), "{denied}");
        let kind = client.call("prompts/get", json!({"name": "greet", "arguments": {"tone": "kind"}})).await;
        assert_eq!(kind["result"]["messages"][0]["content"]["text"], "kind", "{kind}");
    }
}

#[tokio::test]
async fn what_a_transform_fixes_and_defaults_is_judged() {
    let schema = object(json!({"force": {"type": "boolean"}, "branch": {"type": "string"}}));
    let fixed =
        |force: bool| EntryEdit::new().rename("send").fix("force", force).default_value("branch", "main");
    let places = |force: bool, rules: Rules| {
        let changed = || Transform::new(Behind(schema.clone())).tool("push", fixed(force));
        let named = |inner: Transform<Behind>| {
            Transform::new(Mount::new("git", inner)).tool("git_send", EntryEdit::new().rename("git_push"))
        };
        let outer = || Server::new("o", "0").gate(rules.clone());
        [
            outer().provider(named(changed())),
            outer().mount(Prefix::none(), Server::new("inner", "0").provider(named(changed()))),
            Server::new("o", "0")
                .provider(Server::new("inner", "0").provider(named(changed())).gate(rules.clone())),
        ]
    };
    for server in places(true, denying(json!({"force": true}))) {
        check(&server, &[("{}", "not this"), (r#"{"force":false}"#, "no argument `force`")]).await;
    }
    for server in places(false, denying(json!({"branch": "main"}))) {
        let kept = r#"{"branch":"dev","force":false}"#;
        check(
            &server,
            &[("{}", "not this"), (r#"{"branch":"dev"}"#, kept), (r#"{"branch":1}"#, "send a string")],
        )
        .await;
    }
}

#[tokio::test]
async fn a_path_through_a_list_is_met_by_one_to_deny_and_by_all_to_allow() {
    let items = object(json!({"force": {"type": "boolean"}}));
    let known = object(json!({"opts": {"type": "array", "items": items}}));
    for schema in [&known, &json!({"type": "object"})] {
        check(
            &gated(schema, denying(json!({"opts.force": true}))),
            &[
                (r#"{"opts":[{"force":false},{"force":true}]}"#, "not this"),
                (r#"{"opts":[{"force":false},{"force":"true"}]}"#, "send a boolean"),
                (r#"{"opts":[{"force":false},true]}"#, UNJUDGED),
                (r#"{"opts":[{"force":false}]}"#, r#"{"opts":[{"force":false}]}"#),
            ],
        )
        .await;
        check(
            &gated(schema, allowing(json!({"opts.force": false}))),
            &[
                (r#"{"opts":[{"force":false},{"force":true}]}"#, "no such tool"),
                (r#"{"opts":[{"force":false},{}]}"#, "no such tool"),
                (r#"{"opts":[]}"#, "no such tool"),
                (r#"{"opts":[{"force":false}]}"#, r#"{"opts":[{"force":false}]}"#),
            ],
        )
        .await;
    }
    let tags = object(json!({"tags": {"type": "array", "items": {"type": "string"}}}));
    check(
        &gated(&tags, denying(json!({"tags": "secret"}))),
        &[(r#"{"tags":["a","secret"]}"#, "not this"), (r#"{"tags":["a"]}"#, r#"{"tags":["a"]}"#)],
    )
    .await;
}

#[tokio::test]
async fn each_condition_has_its_meaning() {
    // The condition, the argument, and whether a rule that denies and one that allows is met.
    for (condition, argument, denies, allows) in [
        (json!("a*"), json!("ab"), true, true),
        (json!("a*"), json!("ba"), false, false),
        (json!({"not": "a"}), json!("b"), true, true),
        (json!({"not": "a"}), json!("a"), false, false),
        // Nobody knows what the server behind takes in its place.
        (json!({"not": "a"}), Value::Null, true, false),
        (json!({"one_of": ["a", "b*", 3]}), json!("bc"), true, true),
        (json!({"one_of": ["a", "b*", 3]}), json!(3.0), true, true),
        (json!({"one_of": ["a", "b*", 3]}), json!("c"), false, false),
        (json!({"min": 2, "max": 5}), json!(2), true, true),
        (json!({"min": 2, "max": 5}), json!(5.0), true, true),
        (json!({"min": 2, "max": 5}), json!(5.5), false, false),
        (json!({"min": 2, "not": 3}), json!(3), false, false),
        (json!({"max": 9_007_199_254_740_992_u64}), json!(9_007_199_254_740_993_u64), false, false),
        (json!({"min": 2}), Value::Null, false, false),
        (json!({"absent": true}), Value::Null, true, true),
        (json!({"absent": true}), json!(false), false, false),
        (json!({"absent": false}), json!(0), true, true),
        (json!({"absent": false}), Value::Null, false, false),
        (json!("/srv/*"), json!("/srv/a/../b"), true, true),
        (json!("/srv/*"), json!("/srv/../etc/passwd"), true, false),
        (json!("/etc/*"), json!("/srv/.././/etc//passwd"), true, false),
        (json!("/etc/*"), json!("/srv\\..\\..\\etc\\passwd"), true, false),
        (json!({"not": "/srv/*"}), json!("/srv/../etc/passwd"), true, false),
        (json!("https://a.example/*"), json!("https://a.example/b"), true, true),
    ] {
        let arguments = match &argument {
            Value::Null => "{}".to_owned(),
            argument => json!({ "x": argument }).to_string(),
        };
        let condition = json!({ "x": condition });
        let denied = push(&gated(&json!({}), denying(condition.clone())), &arguments).await;
        assert_eq!(denied.contains("not this"), denies, "deny {condition}: {arguments} {denied}");
        let allowed = push(&gated(&json!({}), allowing(condition.clone())), &arguments).await;
        assert_eq!(allowed == arguments, allows, "allow {condition}: {arguments} {allowed}");
    }
    // `null` is neither there nor absent.
    for absent in [true, false] {
        let server = gated(&json!({}), denying(json!({"x": {"absent": absent}})));
        check(&server, &[(r#"{"x":null}"#, UNJUDGED)]).await;
    }
}

#[test]
fn a_rule_reads_the_arguments_of_all_its_conditions() {
    for condition in [
        json!(true),
        json!({"not": "no"}),
        json!({"one_of": ["no"]}),
        json!({"min": 1}),
        json!({"max": 1}),
        json!({"absent": true}),
        json!({"absent": false}),
    ] {
        let rules = denying(json!({"to.country.code": condition}));
        // A header has the name of an argument, or of a member of one.
        for read in ["to", "TO", "country", "code", "to.country", "country.code", "to.country.code"] {
            assert!(rules.reads_argument(read), "{condition} {read}");
        }
        for other in ["t", "tocountry", "from", "cod", ""] {
            assert!(!rules.reads_argument(other), "{condition} {other}");
        }
    }
}

#[test]
fn a_condition_that_says_nothing_or_too_much_is_refused() {
    let deep = ["a"; 17].join(".");
    let many: Value =
        (0..65).map(|at| (format!("a{at}"), json!(1))).collect::<serde_json::Map<_, _>>().into();
    for (arguments, expected) in [
        (json!({"x": {}}), "`x`"),
        (json!({"x": {"force": true}}), "`x.force`"),
        (json!({"x": {"not": ["a"]}}), "`x`"),
        (json!({"x": {"one_of": []}}), "`x`"),
        (json!({"x": {"absent": true, "min": 1}}), "`x`"),
        (json!({"x..y": 1}), "`x..y`"),
        (json!({ deep: 1 }), "16 names"),
        (many, "64 arguments"),
    ] {
        let set = json!({"rules": [{"arguments": arguments, "decision": "deny"}]});
        let refused = serde_json::from_value(set.clone()).map(|set| Rules::new(set).map(drop));
        let refused = refused.unwrap().unwrap_err().to_string();
        assert!(refused.starts_with("rule 1: ") && refused.contains(expected), "{set}: {refused}");
    }
}

/// What is fixed is not shown, and the answer is valid for what was judged, however it is written.
#[tokio::test]
async fn a_confirmation_is_about_the_arguments_that_are_judged() {
    let schema = object(json!({"force": {"type": "boolean", "default": true}, "key": {"type": "string"}}));
    let confirming = rules(json!([{"arguments": {"force": true}, "decision": "confirm"}]));
    let edit = EntryEdit::new().fix("key", "hush");
    let git = Transform::new(Behind(schema)).tool("push", edit);
    let server = Server::new("s", "0").mount("git", git).gate(confirming);
    let mut client = Client::open(&server, R5, json!({"elicitation": {}})).await;
    let mut call = async |arguments: Value, answers: Value| {
        let params = json!({"name": "git_push", "arguments": arguments, "inputResponses": answers});
        let id = client.send("tools/call", params).await;
        client.until(id).await["result"].clone()
    };
    let asked = call(json!({"n": {"a": 1, "b": 2}}), json!({})).await;
    let (key, question) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
    let message = question["params"]["message"].as_str().unwrap();
    assert!(
        message.contains(r#"{"n":{"a":1,"b":2},"force":true}"#) && !message.contains("hush"),
        "{message}"
    );
    let agreed = json!({ key: {"action": "accept", "content": {}} });
    let other = call(json!({"n": {"a": 1, "b": 3}}), agreed.clone()).await;
    assert_eq!(other["resultType"], "input_required", "{other}");
    let done = call(json!({"force": true, "n": {"b": 2, "a": 1}}), agreed).await;
    assert_eq!(done["content"][0]["text"], r#"{"force":true,"n":{"b":2,"a":1},"key":"hush"}"#, "{done}");
}
