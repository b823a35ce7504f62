use std::process::Command;

use pintle_serve::CallPlan;
use serde_json::{Value, json};

use super::commands::read;

fn plan(entry: &str, arguments: &Value) -> Result<CallPlan, String> {
    let file = format!("[x]\n{entry}\n");
    let tools = read(&file, ".".as_ref()).map_err(|fault| fault.to_string())?;
    let plan = tools.plan("x", arguments.as_object().unwrap()).unwrap();
    plan.map_err(|fault| fault.to_string())
}

fn line(entry: &str, arguments: &Value) -> String {
    plan(entry, arguments).unwrap().to_string()
}

const GET: &str = r#"
request = { url = "https://h/{a}?q={l}", query = { u = "{u}", key = { env = "NO_SUCH_KEY" } }, headers = { X-A = "<{u}>", Authorization = { bearer_env = "NO_SUCH_TOKEN" } } }
arguments = { a = "string", l = "string[] = []", u = "string?" }
"#;

#[test]
fn a_request_is_shown_as_a_command_of_curl_without_its_secrets() {
    let hidden = "-H 'authorization: …'";
    assert_eq!(
        line(GET, &json!({"a": "a b", "l": ["1", "&"], "u": "it's"})),
        format!(
            "curl 'https://h/a%20b?q=1&q=%26&u=it%27s&key=…' -H 'accept: */*' -H 'x-a: <it'\\''s>' {hidden}"
        )
    );
    assert_eq!(line(GET, &json!({"a": "x"})), format!("curl 'https://h/x?key=…' -H 'accept: */*' {hidden}"));
    let plan = serde_json::to_value(plan(GET, &json!({"a": "x"})).unwrap()).unwrap();
    assert_eq!((&plan["method"], &plan["headers"][1]), (&json!("GET"), &json!(["authorization", null])));
}

#[test]
fn a_body_is_json_a_form_or_a_text() {
    let types = r#"arguments = { n = "integer?", l = "string[]?", t = "string?" }"#;
    let arguments = json!({"n": 1, "l": ["a&", "b"], "t": "x\"y"});
    for (request, all, none) in [
        (
            r#"method = "post", json = { n = "{n}", l = "{l}", t = "<{t}>", fixed = [true] }"#,
            r#"application/json' --data-raw '{"fixed":[true],"l":["a&","b"],"n":1,"t":"<x\"y>"}'"#,
            r#"application/json' --data-raw '{"fixed":[true]}'"#,
        ),
        (
            r#"method = "PUT", form = { n = "{n}", "a b" = "{l}", t = "<{t}>" }"#,
            "application/x-www-form-urlencoded' --data-raw 'a%20b=a%26&a%20b=b&n=1&t=%3Cx%22y%3E'",
            "application/x-www-form-urlencoded'",
        ),
        (
            r#"method = "PATCH", body = "{n} {t}", headers = { content-type = "text/csv", x-l = "{t}" }, query = { l = "{l}" }"#,
            "-H 'content-type: text/csv' -H 'x-l: x\"y' --data-raw '1 x\"y'",
            "-H 'content-type: text/csv' --data-raw ' '",
        ),
    ] {
        let entry = format!("request = {{ url = \"https://h/\", {request} }}\n{types}");
        let whole = line(&entry, &arguments);
        assert!(whole.starts_with("curl -X P") && whole.ends_with(all), "{whole}");
        let empty = line(&entry, &json!({}));
        assert!(empty.ends_with(none), "{empty}");
    }
}

#[test]
fn a_shell_reads_the_words_of_curl() {
    let entry = "request = { method = \"POST\", url = \"https://h/\", body = \"{t}\" }\narguments = { t = \"string\" }";
    let text = "it's $(id) `x`\n\"\\";
    let shown = line(entry, &json!({"t": text})).replacen("curl", "printf '%s|'", 1);
    let Ok(output) = Command::new("sh").args(["-c", &shown]).output() else { return };
    let words = String::from_utf8(output.stdout).unwrap();
    assert!(words.ends_with(&format!("|--data-raw|{text}|")), "{words}");
}

#[test]
fn a_value_that_would_change_the_request_is_refused() {
    let entry = |request: &str| {
        format!("request = {{ url = \"https://h/{{t}}\", {request} }}\narguments = {{ t = \"string\" }}")
    };
    for (value, expected) in [
        ("a\r\nHost: evil", "the header `x-t` cannot have line breaks"),
        ("a\u{0}", "the header `x-t` cannot have line breaks"),
        ("..", "a segment `.` or `..`"),
        (&"x".repeat(17 << 10), "more than 16384 bytes"),
        (&"x".repeat(61 << 10), "more than 61440 bytes"),
    ] {
        let refused = plan(&entry("headers = { X-T = \"{t}\" }"), &json!({"t": value})).unwrap_err();
        assert!(refused.contains(expected), "{refused}");
    }
}

#[test]
fn a_wrong_request_is_refused_with_what_to_write() {
    for (entry, expected) in [
        ("request = { url = \"https://h/\" }\ncommand = [\"a\"]", "`command` is for a tool with a `command`"),
        ("request = { url = \"https://h/\" }\nstdin = \"a\"", "`stdin` is for a tool with a `command`"),
        ("request = { url = \"https://h/\", method = \"TRACE\" }", "`TRACE` is no method"),
        ("request = { url = \"https://h/\", body = \"a\" }", "add `method = \"POST\"`"),
        (
            "request = { url = \"https://h/\", method = \"POST\", body = \"a\", form = {} }",
            "remove the others",
        ),
        (
            "request = { url = \"https://h/\", headers = { Host = \"a\" } }",
            "`Host` is no header that can be set",
        ),
        ("request = { url = \"https://h/\", headers = { \"a b\" = \"a\" } }", "`a b` is no header"),
        ("request = { url = \"https://h/\", pick = \"data\" }", "`data` is no JSON pointer"),
        (
            "request = { url = \"https://h/\", pick = \"/a\" }\noutput = \"image/png\"",
            "`pick` is for an answer in JSON",
        ),
        ("request = { url = \"https://u:p@h/\" }", "it has a user or a password"),
        ("request = { url = \"ftp://h/\" }", "not an `http` or `https` URL"),
        ("request = { url = \"https://h/{x}\" }", "`{x}` is no argument"),
        ("request = { url = \"https://h/\" }\narguments = { x = \"string\" }", "argument `x` has no place"),
        (
            "request = { url = \"https://h/\", query = { x = \"a{x}\" } }\narguments = { x = \"string[]\" }",
            "`x` is a list",
        ),
        ("", "it has no command: add `command = [\"PROGRAM\", \"ARGUMENT\"]`"),
    ] {
        let wrong = plan(entry, &json!({})).unwrap_err();
        assert!(wrong.contains(expected), "{entry}: {wrong}");
    }
}
