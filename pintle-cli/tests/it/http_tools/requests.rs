//! `pintle serve` with tools that send HTTP requests, to a server on this machine whose answers are written down.

use std::sync::{Arc, Mutex};

use pintle::{
    Client,
    client::{Answer, http::Http},
    transport::Child,
};
use serde_json::{Value, json};

use crate::support::{
    HttpServing,
    http_request::{HttpRequest, listen},
    machine::Machine,
    pintle, run,
};

fn file(api: &str) -> String {
    format!(
        r#"
[tools.weather]
description = "Shows the weather of a city."
request = {{ url = "http://{api}/cities/{{city}}/weather?units={{units}}", headers = {{ Authorization = {{ bearer_env = "WEATHER_TOKEN" }} }}, query = {{ key = {{ env = "WEATHER_KEY" }} }}, pick = "/data/0" }}
arguments = {{ city = "string", units = "string?" }}
output = "json"
read_only = true

[tools.tell]
request = {{ method = "POST", url = "http://{api}/tell", json = {{ text = "{{text}}", times = "{{times}}" }} }}
arguments = {{ text = "string", times = "integer?" }}
max_output = 100
confirm = true
"#
    )
}

/// A server that answers by the path.
fn api() -> (String, Arc<Mutex<Vec<String>>>) {
    let requests: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = requests.clone();
    let address = listen(move |mut connection, address| {
        use std::io::Write as _;

        let request = HttpRequest::read(connection)?;
        let whole = format!("{}{}", request.head, String::from_utf8_lossy(&request.body));
        let path = request.path().split('?').next().unwrap_or_default().to_owned();
        let (status, body) = match &*path {
            "/cities/oslo/weather" => ("200 OK", r#"{"data":[{"sun":true}]}"#.to_owned()),
            "/cities/empty/weather" => ("200 OK", r#"{"data":[]}"#.to_owned()),
            "/cities/moved/weather" => {
                (&*format!("302 Found\r\nlocation: http://{address}/cities/oslo/weather"), String::new())
            }
            "/cities/away/weather" => ("302 Found\r\nlocation: http://localhost:1/?key=x", String::new()),
            "/tell" => ("200 OK", "x".repeat(request.body.len())),
            _ => ("404 Not Found", whole.clone()),
        };
        kept.lock().unwrap().push(whole);
        let length = body.len();
        write!(connection, "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
    });
    (address.to_string(), requests)
}

const SECRETS: [(&str, &str); 2] = [("WEATHER_TOKEN", "t0k s3cret"), ("WEATHER_KEY", "k3y-s3cret")];

fn command(machine: &Machine, words: &[&str]) -> std::process::Command {
    let mut command = pintle();
    command.args(words).current_dir(machine.path("")).envs(SECRETS);
    command
}

#[tokio::test]
async fn a_tool_is_a_request() {
    let (api, requests) = api();
    let machine = Machine::new("requests");
    machine.write("tools.toml", &file(&api));
    let serving = HttpServing::of(command(&machine, &["serve", "tools.toml", "--http", "127.0.0.1:0"]));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let questions = asked.clone();
    let client = Client::new("test", "1").on_elicit(move |question| {
        questions.lock().unwrap().push(question.message.clone());
        async { Answer::accept(json!({})) }
    });
    let client = client.connect(Http::new(&serving.url).unwrap()).await.unwrap();
    let call = async |tool: &str, arguments: Value| client.call_tool(tool, arguments).await.unwrap();

    let sun = call("weather", json!({"city": "oslo", "units": "c&f"})).await;
    assert_eq!(sun.structured_content, Some(json!({"sun": true})), "{sun:?}");
    let sent = requests.lock().unwrap().remove(0);
    assert!(sent.starts_with("GET /cities/oslo/weather?units=c%26f&key=k3y-s3cret HTTP/1.1\r\n"), "{sent}");
    assert!(sent.contains("\r\nauthorization: Bearer t0k s3cret\r\n"), "{sent}");
    let moved = call("weather", json!({"city": "moved"})).await;
    assert_eq!(moved.structured_content, Some(json!({"sun": true})), "{moved:?}");

    for (city, expected) in [
        ("empty", "nothing at `/data/0`"),
        ("away", "it redirects to `http://localhost:1/`, which is not followed"),
        ("a/b", "HTTP 404 Not Found\nGET /cities/a%2Fb/weather?key=… HTTP/1.1"),
        ("..", "`city` has a segment `.` or `..`"),
    ] {
        let failed = call("weather", json!({"city": city})).await;
        let shown = format!("{failed:?}");
        assert!(failed.is_error == Some(true) && failed.text().contains(expected), "{shown}");
        assert!(!shown.contains("s3cret"), "{shown}");
    }

    assert_eq!(call("tell", json!({"text": "a\"", "times": 3})).await.text().len(), 24);
    assert!(requests.lock().unwrap().last().unwrap().ends_with("\r\n\r\n{\"text\":\"a\\\"\",\"times\":3}"));
    let question = asked.lock().unwrap().remove(0);
    assert!(question.contains(&format!("curl -X POST http://{api}/tell ")), "{question}");
    let long = call("tell", json!({"text": "x".repeat(200)})).await;
    assert!(long.text().contains("the answer has more than 100 bytes"), "{long:?}");
}

#[tokio::test]
async fn a_private_address_that_is_not_written_as_one_is_reached_only_if_the_tool_allows_it() {
    let (api, requests) = api();
    let machine = Machine::new("requests-private");
    // The system resolves it as a name.
    let url = format!("http://127.1:{}/cities/oslo/weather", api.rsplit(':').next().unwrap());
    for (setting, is_allowed) in [("", false), (", allow_private = true", true)] {
        machine.write("tools.toml", &format!("[tools.weather]\nrequest = {{ url = \"{url}\"{setting} }}\n"));
        let file = machine.path("tools.toml");
        let child = Child::command(env!("CARGO_BIN_EXE_pintle")).args(["serve", file.to_str().unwrap()]);
        let client = Client::new("test", "1").connect(child.spawn().unwrap()).await.unwrap();
        let result = client.call_tool("weather", json!({})).await.unwrap();
        assert_eq!(result.is_error != Some(true), is_allowed, "{result:?}");
        assert_eq!(requests.lock().unwrap().len(), usize::from(is_allowed), "{result:?}");
        client.close().await;
    }
}

#[test]
fn a_request_is_checked_and_shown() {
    let machine = Machine::new("requests-checked");
    let right = file("127.0.0.1:1");
    let typed = |file: &str, words: &[&str]| {
        machine.write("tools.toml", file);
        run(&mut command(&machine, &[&["serve", "tools.toml"], words].concat()))
    };
    let shown = typed(&right, &["--dry-run", "weather", "city=São Paulo"]);
    assert_eq!(
        shown.stdout,
        "curl 'http://127.0.0.1:1/cities/S%C3%A3o%20Paulo/weather?key=…' -H 'accept: application/json' -H 'authorization: …'\n",
        "{shown:?}"
    );
    for (from, to, expected) in [
        ("127.0.0.1:1/cities", "{city}/cities", "line 2: tool `weather`: `url` has a place before its path"),
        ("{ bearer_env = \"WEATHER_TOKEN\" }", "\"Bearer hunter2\"", "`Authorization` looks like a secret"),
        ("?units={units}", "?api_key=hunter2&units={units}", "the query of its URL looks like a secret"),
        ("WEATHER_KEY", "WEATHER_NONE", "the environment variable `WEATHER_NONE` is not set"),
        ("url =", "ulr =", "line 4: unknown field `ulr`; did you mean `url`?"),
    ] {
        let printed = typed(&right.replacen(from, to, 1), &["--check"]);
        assert!(printed.code == Some(1) && printed.stderr.contains(expected), "{to}: {printed:?}");
    }
    let open = typed(&right, &["--http", "0.0.0.0:0", "--insecure-no-auth", "--allow-host", "a.example"]);
    assert!(open.stderr.contains("`weather` uses a secret of this machine"), "{open:?}");
}
