//! `pintle serve` with OpenAPI documents: against an API on this machine whose answers are written down.

use std::sync::{Arc, Mutex};

use pintle::{Client, Connection, client::http::Http, transport::Child};
use serde_json::json;

use crate::{
    gateway::{ended, page},
    support::{HttpServing, http_request::HttpRequest, machine::Machine, pintle, run, scripted_http},
};

const PETS: &str = r#"
openapi: 3.1.0
info: { title: Pets, version: '1' }
servers: [{ url: https://pets.example.com/v1 }]
components:
  securitySchemes:
    token: { type: http, scheme: bearer }
    code: { type: apiKey, in: query, name: code }
security: [{ token: [], code: [] }]
paths:
  /pets/{id}:
    get:
      operationId: getPet
      summary: Returns a pet.
      parameters:
        - { name: id, in: path, required: true, schema: { type: string } }
        - { name: full, in: query, schema: { type: boolean } }
  /pets:
    post:
      operationId: addPet
      requestBody:
        content: { application/json: { schema: { type: object, properties: { name: { type: string } } } } }
    trace: {}
"#;

const SECRETS: [(&str, &str); 3] =
    [("PETS_TOKEN", "t0ps3cret"), ("PETS_CODE", "c0de s3cret"), ("PETS_TEAM", "t3am s3cret")];

fn file(api: &str) -> String {
    format!(
        r#"
[apis.pets]
document = "docs/pets.yaml"
base = "http://{api}/v1"
secrets = {{ token = {{ env = "PETS_TOKEN" }}, code = {{ env = "PETS_CODE" }} }}
headers = {{ X-Team = {{ env = "PETS_TEAM" }} }}
rename = {{ addPet = "add" }}
"#
    )
}

/// An API that answers each request with a pet, or with an error that repeats all of it, and keeps the requests.
fn api() -> (String, Arc<Mutex<Vec<String>>>) {
    let requests: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = requests.clone();
    let address = scripted_http::serve_with(move |request: &HttpRequest| {
        let whole = format!("{}{}", request.head, String::from_utf8_lossy(&request.body));
        kept.lock().unwrap().push(whole.clone());
        match request.path().contains("/missing") {
            true => ("404 Not Found", "text/plain", whole),
            false => ("200 OK", "application/json", r#"{"name":"Tern"}"#.to_owned()),
        }
    });
    (address, requests)
}

fn machine(name: &str, file: &str) -> Machine {
    let machine = Machine::new(name);
    machine.write("docs/pets.yaml", PETS);
    machine.write("team.toml", file);
    machine
}

fn command(machine: &Machine, words: &[&str]) -> std::process::Command {
    let mut command = pintle();
    command.args(words).current_dir(machine.path("")).envs(SECRETS);
    command
}

async fn connect(machine: &Machine, words: &[&str]) -> (HttpServing, Connection) {
    let mut command = command(machine, words);
    command.args(["--http", "127.0.0.1:0"]);
    let serving = HttpServing::of(command);
    let client = Client::new("test", "1").connect(Http::new(&serving.url).unwrap()).await.unwrap();
    (serving, client)
}

async fn names(client: &Connection) -> Vec<String> {
    client.tools().await.unwrap().into_iter().map(|tool| tool.name).collect()
}

#[tokio::test]
async fn operations_are_tools_that_rules_judge_and_secrets_are_sent_and_shown_nowhere() {
    let (api, requests) = api();
    let rules = "[[rules]]\ntools = [\"pets_getPet\"]\ndecision = \"allow\"\n\
                 [servers.none]\ntargets = [\"pets\"]\nhide = [\"*_getPet\"]\n";
    let machine = machine("apis-rules", &(file(&api) + rules));
    let (serving, client) = connect(&machine, &["serve", "team.toml"]).await;
    assert_eq!(names(&client).await, ["pets_getPet"], "no rule allows the other one");
    assert!(client.call_tool("pets_add", json!({"name": "Tern"})).await.is_err());
    for (path, offered) in [("pets", &["pets_getPet"][..]), ("none", &[])] {
        let at = Http::new(format!("{}/{path}", serving.url)).unwrap();
        assert_eq!(names(&Client::new("test", "1").connect(at).await.unwrap()).await, offered);
    }
    let arguments = json!({"id": "a/b", "full": true});
    let pet = client.call_tool("pets_getPet", arguments).await.unwrap();
    assert_eq!(pet.structured_content, Some(json!({"name": "Tern"})));
    let sent = requests.lock().unwrap().remove(0);
    let (line, headers) = sent.split_once("\r\n").unwrap();
    assert_eq!(line, "GET /v1/pets/a%2Fb?full=true&code=c0de%20s3cret HTTP/1.1");
    for header in ["authorization: Bearer t0ps3cret\r\n", "x-team: t3am s3cret\r\n"] {
        assert!(headers.contains(header), "{headers}");
    }
    let missing = client.call_tool("pets_getPet", json!({"id": "missing"})).await.unwrap();
    assert_eq!(missing.is_error, Some(true));
    let shown = format!("{missing:?}");
    assert!(shown.contains("HTTP 404") && !shown.contains("s3cret"), "{shown}");
    serving.printed("`pets`: `TRACE /pets` is left out: `trace` is not supported").await;
}

#[tokio::test]
async fn a_document_is_served_without_a_file_and_its_changes_reach_clients() {
    let (api, requests) = api();
    let machine = machine("apis-reload", "");
    let base = format!("http://{api}");
    let words = ["serve", "--openapi", "docs/pets.yaml", "--base", &base];
    let (_serving, client) = connect(&machine, &words).await;
    assert_eq!(names(&client).await, ["getPet", "addPet"]);
    client.call_tool("addPet", json!({"name": "Tern"})).await.unwrap();
    assert!(requests.lock().unwrap()[0].ends_with("\r\n\r\n{\"name\":\"Tern\"}"), "{requests:?}");
    let mut changes = client.changes().await.unwrap();
    // An operation in another file, whose changes count, too.
    machine.write("docs/owner.yaml", "get: { operationId: getOwner, summary: Old. }");
    let changed = format!("{PETS}  /owner:\n    $ref: owner.yaml\n");
    machine.write("docs/pets.yaml", &changed);
    while names(&client).await.len() < 3 {
        changes.next().await.unwrap();
    }
    machine.write("docs/owner.yaml", "get: { operationId: getOwner, summary: New and longer. }");
    let summary = async || client.tools().await.unwrap().pop().unwrap().description.unwrap();
    while summary().await != "New and longer." {
        changes.next().await.unwrap();
    }
}

#[tokio::test]
async fn an_api_on_this_machine_is_called_only_if_the_file_names_it() {
    let (api, requests) = api();
    let machine = machine("apis-private", "");
    let document = PETS.replace("https://pets.example.com", &format!("http://{api}"));
    machine.write("docs/pets.yaml", &document);
    let unnamed = "[apis.pets]\ndocument = \"docs/pets.yaml\"\nprefix = \"\"\n";
    for (file, is_allowed) in
        [(unnamed.to_owned(), false), (format!("{unnamed}allow_private = true\n"), true)]
    {
        machine.write("team.toml", &file);
        let child = Child::command(env!("CARGO_BIN_EXE_pintle"))
            .args(["serve", machine.path("team.toml").to_str().unwrap()]);
        let client = Client::new("test", "1").connect(child.spawn().unwrap()).await.unwrap();
        let result = client.call_tool("getPet", json!({"id": "1"})).await.unwrap();
        assert_eq!(result.is_error != Some(true), is_allowed, "{result:?}");
        assert_eq!(requests.lock().unwrap().len(), usize::from(is_allowed), "{result:?}");
        client.close().await;
    }
}

#[tokio::test]
async fn an_included_file_has_apis_and_chooses_what_they_return() {
    let api = scripted_http::serve_with(|_: &HttpRequest| {
        let pets: Vec<_> =
            (100..200).map(|id| json!({ "id": id, "owner": { "name": "Ann", "mail": "a@b" } })).collect();
        ("200 OK", "application/json", json!(pets).to_string())
    });
    let machine = machine("apis-include", "include = [\"more/*.toml\"]\n[tools.here]\ncommand = [\"pwd\"]\n");
    machine.write("more/docs/pets.yaml", PETS);
    let included = format!(
        "[apis.pets]\ndocument = \"docs/pets.yaml\"\nbase = \"http://{api}\"\nmax_result = 200\n\
         fields = {{ getPet = [\"id\", \"owner.name\"] }}\n"
    );
    machine.write("more/pets.toml", &included);
    let (_serving, client) = connect(&machine, &["serve", "team.toml"]).await;
    assert_eq!(names(&client).await, ["here", "pets_getPet", "pets_addPet"]);
    let result = client.call_tool("pets_getPet", json!({"id": "1"})).await.unwrap().text();
    let (json, note) = result.split_once('\n').unwrap();
    let pets: Vec<_> = (100..105).map(|id| json!({ "id": id, "owner": { "name": "Ann" } })).collect();
    assert_eq!(json, json!(pets).to_string());
    assert!(note.contains("only the first 5 of 100 items"), "{note}");
    let mut changes = client.changes().await.unwrap();
    machine.write("more/pets.toml", &format!("{included}exclude = [\"addPet\"]\n"));
    while names(&client).await.len() > 2 {
        changes.next().await.unwrap();
    }
    for (path, text, expected) in [
        ("more/pets.toml", included.replace("getPet", "gtPet"), "api `pets`: no operation is `gtPet`"),
        ("more/other.toml", included.clone(), "the API `pets` is in another file, too: rename one"),
    ] {
        machine.write(path, &text);
        let checked = run(&mut command(&machine, &["serve", "team.toml", "--check"]));
        assert!(checked.code == Some(1) && checked.stderr.contains(expected), "{checked:?}");
    }
}

#[tokio::test]
async fn an_api_is_searched_limited_audited_and_ready() {
    let (api, requests) = api();
    let rules = "[[rules]]\ntools = [\"pets_getPet\"]\ndecision = \"allow\"\nrate = { calls = 2, seconds = 3600 }\n\
                 [[rules]]\ntools = [\"pets_add\"]\ndecision = \"deny\"\nreason = \"the shop is closed\"\n";
    let options = "search = true\naudit = \"audit.jsonl\"\n";
    let machine = machine("apis-search", &format!("{options}{}{rules}", file(&api)));
    let (serving, client) = connect(&machine, &["serve", "team.toml"]).await;
    assert_eq!(names(&client).await, ["search_tools", "call_tool"]);
    let found = client.call_tool("search_tools", json!({"query": "returns a pet"})).await.unwrap().text();
    assert!(found.contains("pets_getPet"), "{found}");
    let call = async |name: &str| {
        let called = json!({"name": name, "arguments": {"id": "1"}});
        client.call_tool("call_tool", called).await.map(|result| result.text())
    };
    for _ in 0..2 {
        assert_eq!(call("pets_getPet").await.unwrap(), r#"{"name":"Tern"}"#);
    }
    let limited = call("pets_getPet").await.unwrap_err().to_string();
    assert!(limited.contains("was called too often"), "{limited}");
    let denied = call("pets_add").await.unwrap_err().to_string();
    assert!(denied.contains("the shop is closed"), "{denied}");
    assert_eq!(requests.lock().unwrap().len(), 2);
    let ready = page(&serving, "/ready", "");
    assert!(ready.starts_with("HTTP/1.1 200 OK\r\n"), "{ready}");
    let audit = ended(serving, &machine, "audit.jsonl");
    let decided = |tool: &str| audit.lines().filter(|line| line.contains(&format!("\"{tool}\""))).count();
    assert_eq!((decided("pets_getPet"), decided("pets_add")), (3, 1), "{audit}");
    assert!(!audit.contains("s3cret"), "{audit}");
}

#[tokio::test]
async fn pages_are_read_as_one_and_the_next_one_is_told() {
    let api = scripted_http::serve_with(|request: &HttpRequest| {
        let cursor =
            request.path().rsplit('=').next().and_then(|cursor| cursor.parse::<u8>().ok()).unwrap_or(0);
        let page = json!({ "items": [cursor], "next_cursor": (cursor + 1).to_string() });
        ("200 OK", "application/json", page.to_string())
    });
    let machine = machine("apis-pages", "");
    let cursor = "parameters: [{ name: cursor, in: query, schema: { type: string } }]";
    let document =
        format!("openapi: 3.1.0\npaths: {{ /items: {{ get: {{ operationId: list, {cursor} }} }} }}\n");
    machine.write("docs/pets.yaml", &document);
    let file = format!("[apis.pets]\ndocument = \"docs/pets.yaml\"\nbase = \"http://{api}\"\npages = 3\n");
    machine.write("team.toml", &file);
    let (_serving, client) = connect(&machine, &["serve", "team.toml"]).await;
    let text = client.call_tool("pets_list", json!({})).await.unwrap().text();
    let (json, note) = text.split_once('\n').unwrap();
    assert_eq!(json, r#"{"items":[0,1,2],"next_cursor":"3"}"#);
    assert_eq!(note, "note: the next page is that of `cursor` = \"3\"");
}

#[tokio::test]
async fn an_operation_is_a_resource_that_rules_judge() {
    let (api, requests) = api();
    let rules = "[[rules]]\nresources = [\"pets:///pets/2*\"]\ndecision = \"deny\"\n\
                 [[rules]]\ntools = [\"*\"]\nresources = [\"pets:///*\"]\ndecision = \"allow\"\n";
    let machine = machine("apis-resources", &format!("{}resources = [\"getPet\"]\n{rules}", file(&api)));
    let (serving, client) = connect(&machine, &["serve", "team.toml"]).await;
    assert_eq!(names(&client).await, ["pets_add"]);
    let templates = client.resource_templates().await.unwrap();
    assert_eq!(templates[0].uri_template, "pets:///pets/{id}{?full}");
    let read = client.read_resource("pets:///pets/1").await.unwrap();
    assert_eq!(read.contents[0].mime_type.as_deref(), Some("application/json"));
    let sent = requests.lock().unwrap().remove(0);
    assert!(sent.starts_with("GET /v1/pets/1?code=") && sent.contains("Bearer t0ps3cret"), "{sent}");
    for uri in ["pets:///pets/2", "pets:///pets/%32?full=true", "pets:///pets/..%2F1"] {
        assert!(client.read_resource(uri).await.is_err(), "{uri}");
    }
    assert!(requests.lock().unwrap().is_empty(), "a rule denies them");
    drop(serving);
    let checked = run(&mut command(&machine, &["serve", "team.toml", "--check"]));
    assert!(checked.stdout.contains("pets: 1 tool, 1 template\n"), "{checked:?}");
    machine.write(
        "team.toml",
        &format!("{}resources = [\"add*\", \"get*\"]\nfields = {{ \"*Pet\" = [\"id\"] }}\n", file(&api)),
    );
    let described = "      responses: { '200': { content: { application/json: { schema: { properties: { name: {} } } } } } }\n";
    machine.write(
        "docs/pets.yaml",
        &PETS.replacen("      summary: Returns", &format!("{described}      summary: Returns"), 1),
    );
    let checked = run(&mut command(&machine, &["serve", "team.toml", "--check"]));
    let warning =
        "  `GET /pets/{id}`: the document describes no field `id` of its answers; correct `fields`\n";
    assert!(checked.stdout.ends_with(warning), "{checked:?}");
}

#[test]
fn a_dry_run_prints_the_request_without_secrets() {
    let machine = machine("apis-dry-run", &file("127.0.0.1:1"));
    let planned = |words: &[&str]| {
        let whole = [&["serve", "team.toml", "--dry-run"], words].concat();
        run(&mut command(&machine, &whole))
    };
    let get = planned(&["pets_getPet", "id=it's", "full=true"]);
    assert_eq!(
        get.stdout,
        "curl 'http://127.0.0.1:1/v1/pets/it%27s?full=true&code=…' -H 'accept: application/json, */*;q=0.5' -H 'x-team: …' -H 'authorization: …'\n",
        "{get:?}"
    );
    let add = planned(&["pets_add", "name=Tern"]);
    assert!(
        add.stdout.starts_with("curl -X POST 'http://127.0.0.1:1/v1/pets?code=…' ")
            && add.stdout.ends_with(" --data-raw '{\"name\":\"Tern\"}'\n"),
        "{add:?}"
    );
    let dots = planned(&["pets_getPet", "id=.."]);
    assert!(dots.code == Some(1) && dots.stderr.contains("`id` has a segment"), "{dots:?}");
    let meant = planned(&["pets_getPt"]);
    assert!(meant.stderr.contains("did you mean `pets_getPet`?"), "{meant:?}");
}

#[test]
fn a_check_reports_what_is_left_out_and_what_is_wrong() {
    let right = file("127.0.0.1:1");
    let machine = machine("apis-check", &right);
    let check = |file: &str| {
        machine.write("team.toml", file);
        run(&mut command(&machine, &["serve", "team.toml", "--check"]))
    };
    assert_eq!(
        check(&right).stdout,
        "team.toml: 1 API, 0 targets and 0 rules\npets: 2 tools\n  `TRACE /pets` is left out: `trace` is not supported\n"
    );
    for (from, to, expected) in [
        ("docs/pets.yaml", "docs/none.yaml", "line 2: api `pets`: `docs/none.yaml` cannot be read"),
        ("addPet", "adPet", "line 2: api `pets`: there is no operation `adPet`"),
        ("code =", "cod =", "line 2: api `pets`: the secret of `cod`: "),
        ("PETS_CODE", "PETS_KEY", "the environment variable `PETS_KEY` is not set"),
        ("{ env = \"PETS_TOKEN\" }", "\"hunter2\"", "`token` looks like a secret"),
        ("document =", "documnt =", "unknown field `documnt`; did you mean `document`?"),
        (
            "[apis.pets]",
            "[targets.pets]\nserver = \"demo\"\n[apis.pets]",
            "`pets` is the name of a target and of an API",
        ),
        ("[apis.pets]", "[servers.pets]\n[apis.pets]", "`pets` is the name of an API and of a server"),
        (
            "[apis.pets]",
            "[servers.a]\ntargets = [\"pet\"]\n[apis.pets]",
            "there is no target `pet`; did you mean `pets`?",
        ),
    ] {
        let printed = check(&right.replacen(from, to, 1));
        assert!(printed.code == Some(1) && printed.stderr.contains(expected), "{to}: {printed:?}");
        assert!(!printed.stderr.contains("s3cret"), "{printed:?}");
    }
    let open =
        ["serve", "team.toml", "--http", "0.0.0.0:0", "--insecure-no-auth", "--allow-host", "a.example"];
    machine.write("team.toml", &right);
    let refused = run(&mut command(&machine, &open));
    assert!(refused.stderr.contains("`pets` uses a secret of this machine"), "{refused:?}");
}
