//! Files with secrets that are replaced while the gateway runs.

use pintle::client::Mode;

use super::used_until;
use crate::{
    gateway::{connect, gateway, names},
    support::{HttpServing, http_request::HttpRequest, machine::Machine, pintle, scripted_http},
};

const API: &str = r#"
openapi: 3.1.0
info: { title: Keys, version: '1' }
components:
  securitySchemes:
    token: { type: http, scheme: bearer }
security: [{ token: [] }]
paths:
  /key:
    get: { operationId: who, summary: Returns the key. }
"#;

/// The text of a tool with what the gateway sends: a variable of a program, and the secret of an API.
const FILE: &str = r#"
[targets.program]
command = ["PINTLE", "serve", "tools.toml"]
env = { WHO = { file = "secret" } }

[apis.api]
document = "api.yaml"
base = "http://API"
secrets = { token = { file = "secret" } }
"#;

const TOOLS: &str = r#"
[tools.who]
command = ["printenv", "WHO"]
inherit = ["WHO"]
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_was_replaced_is_used_by_the_next_connection_and_no_call_fails() {
    let api = scripted_http::serve_with(|request: &HttpRequest| {
        ("200 OK", "text/plain", request.header("authorization").unwrap_or_default().to_owned())
    });
    let machine = Machine::new("gateway-secrets");
    machine.write("secret", "first\n");
    machine.write("tools.toml", TOOLS);
    machine.write("api.yaml", API);
    machine.write("team.toml", &FILE.replace("PINTLE", env!("CARGO_BIN_EXE_pintle")).replace("API", &api));
    let mut command = pintle();
    command.args(["gateway", "team.toml", "--http", "127.0.0.1:0", "--bearer-env", "ALICE"]);
    command.current_dir(machine.path("")).env("ALICE", "alice-token");
    let gateway = HttpServing::of(command);
    let client = connect(&gateway.url, "alice-token", Mode::Modern).await;
    names(&client, |names| names.len() == 2).await;
    for tool in ["program_who", "api_who"] {
        let text = client.call_tool(tool, ()).await.unwrap().text();
        assert!(text.contains("first"), "{text}");
    }
    machine.write("secret", "second\n");
    for (tool, setting) in [("program_who", "env.WHO"), ("api_who", "secrets.token")] {
        let texts = used_until(&client, tool, |text, _| text.contains("second")).await;
        assert!(texts[..texts.len() - 1].iter().all(|text| text.contains("first")), "{texts:?}");
        let line = gateway.printed(&format!("the secret of `{setting}`")).await;
        assert!(line.contains("has changed, and is used from the next connection on"), "{line}");
        assert!(!line.contains("first") && !line.contains("second"), "{line}");
    }
    // One that is missing for a moment is the one before.
    std::fs::remove_file(machine.path("secret")).unwrap();
    machine.write("team.toml", &(machine.read("team.toml") + "[[rules]]\ndecision = \"allow\"\n"));
    gateway.printed("has changed, and is in use now").await;
    machine.write("secret", "third");
    used_until(&client, "program_who", |text, _| text.contains("third")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_that_was_replaced_has_the_rights_of_the_next_connection() {
    let rules = "[[rules]]\nprincipals = [\"ALICE\"]\ntools = [\"*_tide\"]\ndecision = \"allow\"\n\
                 [[rules]]\nprincipals = [\"BOB\"]\ntools = [\"*_berth\"]\ndecision = \"allow\"\n";
    let (machine, front) = (Machine::new("gateway-secrets-behind"), Machine::new("gateway-secrets-front"));
    let behind = gateway(&machine, &format!("[targets.one]\nserver = \"demo\"\n{rules}"));
    front.write("secret", "Bearer alice-token");
    let headers = "headers = { Authorization = { file = \"secret\" } }";
    let front_gateway = gateway(&front, &format!("[targets.b]\nurl = \"{}\"\n{headers}\n", behind.url));
    let client = connect(&front_gateway.url, "alice-token", Mode::Modern).await;
    assert_eq!(names(&client, |names| !names.is_empty()).await, ["b_one_tide"]);
    front.write("secret", "Bearer bob-token");
    assert_eq!(names(&client, |names| names == ["b_one_berth"]).await, ["b_one_berth"]);
    front_gateway.printed("the secret of `headers.Authorization` of `b` has changed").await;
}
