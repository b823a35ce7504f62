//! Members that are there twice: a gate and a handler could see different values, so such a request is refused on every way to a gate.

use pintle::{
    Server,
    server::{ArgumentType, Decision, GateRequest, Prefix, ToolSearch, prompt, template, tool},
};
use pintle_relay::Relay;
use serde_json::json;

use crate::support::{eras::R4, line_client::Raw};

fn things() -> Server {
    let anything = json!({"type": "object"});
    Server::new("s", "0")
        .tool_completion()
        .tool(tool("open", || async { "ran" }).input_schema(anything))
        .prompt(prompt("open", || async { "ran".to_owned() }).optional("x", "").argument_values("x", ["a"]))
        .prompt(prompt("secret", || async { "ran".to_owned() }).optional("x", "").argument_values("x", ["a"]))
        .template(template("open://{x}", "open", || async { "ran" }).complete("x", || async { vec!["a"] }))
}

/// A gate that reads the arguments of all that have some.
fn gate(request: &GateRequest<'_>) -> Decision {
    match request.name() {
        "secret" => Decision::Hide,
        _ => match request.argument("force", &[ArgumentType::Boolean]) {
            Some(forced) if forced.any(|value| value.is_some()) => Decision::Deny("do not force".to_owned()),
            _ => Decision::Allow,
        },
    }
}

async fn places() -> Vec<(&'static str, Server)> {
    let outer = || Server::new("o", "0").tool_completion();
    let relay = Relay::connect(pintle::Client::new("relay", "0"), || {
        let transport = things().in_process().map_err(std::io::Error::other);
        async { transport }
    });
    vec![
        ("own", things().gate(gate)),
        ("mounted", outer().mount(Prefix::none(), things()).gate(gate)),
        ("inner", outer().mount(Prefix::none(), things().gate(gate))),
        ("relay", outer().provider(relay.await.unwrap()).gate(gate)),
        ("search", outer().provider(ToolSearch::new(things())).gate(gate)),
    ]
}

#[tokio::test]
async fn a_member_that_is_there_twice_is_refused() {
    for (place, server) in places().await {
        let mut raw = Raw::new(&server);
        raw.open(R4, json!({})).await;
        let call = |arguments: &str| match place {
            "search" => {
                format!(r#"{{"name":"call_tool","arguments":{{"name":"open","arguments":{arguments}}}}}"#)
            }
            _ => format!(r#"{{"name":"open","arguments":{arguments}}}"#),
        };
        let complete = |reference: &str| {
            format!(
                r#"{{"ref":{reference},"argument":{{"name":"x","value":""}},"context":{{"arguments":{{}}}}}}"#
            )
        };
        let mut id = 1;
        for (method, params, is_refused) in [
            ("tools/call", call(r#"{"a":1}"#), false),
            ("tools/call", call(r#"{"a":1,"a":2}"#), true),
            ("tools/call", call(r#"{"a":[{"b":1,"\u0062":2}]}"#), true),
            ("tools/call", call(r#"{},"arguments":{"force":1}"#), true),
            ("prompts/get", r#"{"name":"open","arguments":{"x":"a"}}"#.to_owned(), false),
            ("prompts/get", r#"{"name":"open","arguments":{"x":"a","x":"b"}}"#.to_owned(), true),
            ("prompts/get", r#"{"name":"open","name":"secret"}"#.to_owned(), true),
            ("completion/complete", complete(r#"{"type":"ref/prompt","name":"open"}"#), false),
            ("completion/complete", complete(r#"{"type":"ref/prompt","name":"open","name":"secret"}"#), true),
            ("completion/complete", complete(r#"{"type":"ref/prompt","name":"secret","name":"open"}"#), true),
            ("completion/complete", complete(r#"{"type":"ref/resource","uri":"open://{x}"}"#), false),
            (
                "completion/complete",
                complete(r#"{"type":"ref/resource","uri":"open://{x}"}"#)
                    .replace(r#""arguments":{}"#, r#""arguments":{"y":"1","y":"2"}"#),
                true,
            ),
        ] {
            id += 1;
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
            raw.send_text(text).await;
            let answer = raw.recv().await;
            assert_eq!(answer.get("error").is_some(), is_refused, "{place} {method} {params} {answer}");
        }
    }
}
