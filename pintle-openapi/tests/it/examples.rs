//! Documents that show one thing each, and whole ones, of npm packages.

use std::path::Path;

use pintle_openapi::{ApiTools, OpenApi};
use serde_json::{Value, json};

use crate::{
    packages::{EXAMPLES, assert_accepted, example, examples, package},
    support::{Api, Sent, connect},
};

/// Calls one tool of a document, and returns its request.
async fn sent(openapi: OpenApi, tool: &str, arguments: Value) -> Sent {
    let api = Api::plain().await;
    let tools = openapi.base(&api.origin).build().unwrap();
    let result = connect(tools).await.call_tool(tool, arguments).await.unwrap();
    assert_eq!(result.is_error, None, "{tool}: {}", result.text());
    api.only()
}

fn url(tools: &ApiTools, tool: &str) -> String {
    tools.plan(tool, &serde_json::Map::new()).unwrap().unwrap().url
}

#[tokio::test]
async fn all_examples_are_tools_that_hosts_accept() {
    let Some(folder) = package(EXAMPLES) else { return };
    let mut count = 0;
    for part in ["3.0/json", "3.0/yaml", "3.1/json", "3.1/yaml"] {
        for path in examples(&folder.join(part)) {
            let openapi = OpenApi::from_file(&path).unwrap_or_else(|error| panic!("{error}"));
            let tools = openapi.document_url("https://api.test/openapi.json").build().unwrap();
            let shown = path.display().to_string();
            assert_accepted(&tools, &shown);
            // This one tries what a document may not have.
            let is_extreme = path.file_stem().is_some_and(|name| name == "parameters-extreme");
            assert!(tools.left_out().is_empty() || is_extreme, "{shown}: {:?}", tools.left_out());
            count += tools.tools().count();
        }
    }
    assert!(count > 500, "{count}");
}

#[test]
fn documents_of_2_0_are_refused_in_a_sentence() {
    let Some(folder) = package(EXAMPLES) else { return };
    let old = examples(&folder.join("2.0/json"));
    assert_eq!(old.len(), 7);
    for path in old {
        let error = OpenApi::from_file(&path).unwrap_err().to_string();
        assert!(error.contains("it is OpenAPI 2.0 (Swagger), which is not read; convert it"), "{error}");
    }
}

#[tokio::test]
async fn schemas_may_contain_themselves() {
    let Some(bodies) = example("3.0/json/circular-request-bodies.json") else { return };
    let person = json!({ "name": "Ann", "employer": { "name": "Ink", "ceo": { "name": "Bob" } } });
    let sent = sent(bodies, "indirectCircular", json!({ "body": person })).await;
    assert_eq!(
        (sent.line(), sent.text()),
        ("POST /indirect", r#"{"name":"Ann","employer":{"name":"Ink","ceo":{"name":"Bob"}}}"#)
    );
    for name in ["circular-paths", "circular-request-bodies", "schema-circular"] {
        let tools = example(&format!("3.0/json/{name}.json")).unwrap().build().unwrap();
        let text = serde_json::to_string(&tools.tools().collect::<Vec<_>>()).unwrap();
        assert!(text.contains("\"#/$defs/"), "{name}: {text}");
    }
}

#[tokio::test]
async fn files_are_bytes() {
    let read = || example("3.0/json/file-uploads.json");
    let Some(openapi) = read() else { return };
    let picture = sent(openapi, "post_anything_image-png", json!({ "body": "iVBORw==" })).await;
    assert_eq!(
        (picture.line(), picture.header("content-type")),
        ("POST /anything/image-png", Some("image/png"))
    );
    assert_eq!(picture.body, b"\x89PNG");
    let arguments = json!({ "orderId": 7, "documentFile": "/wA=" });
    let form = sent(read().unwrap(), "post_anything_multipart-formdata", arguments).await;
    let boundary =
        form.header("content-type").unwrap().strip_prefix("multipart/form-data; boundary=").unwrap();
    let head = "Content-Disposition: form-data; name=";
    let mut wanted = format!(
        "--{boundary}\r\n{head}\"orderId\"\r\n\r\n7\r\n--{boundary}\r\n{head}\"documentFile\"; filename=\"file\"\r\n\
         Content-Type: application/octet-stream\r\n\r\n"
    )
    .into_bytes();
    wanted.extend_from_slice(b"\xff\x00");
    wanted.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    assert_eq!(form.body, wanted);
    let files =
        sent(read().unwrap(), "put_anything_multipart-formdata", json!({ "filename": ["YQ==", "Yg=="] }))
            .await;
    assert_eq!(files.text().matches("name=\"filename\"; filename=").count(), 2, "{}", files.text());
}

#[tokio::test]
async fn forms_and_cookies_are_encoded() {
    let Some(form) = example("3.0/json/form-data.json") else { return };
    let body = json!({ "client_id": "a", "client_secret": "b&c d", "scope": 7 });
    let form = sent(form, "demoFormData", json!({ "body": body })).await;
    assert_eq!(
        (form.line(), form.header("content-type"), form.text()),
        (
            "POST /anything",
            Some("application/x-www-form-urlencoded"),
            "client_id=a&client_secret=b%26c%20d&scope=7"
        )
    );
    let cookies = example("3.0/json/parameters-cookies.json").unwrap();
    let cookies = sent(cookies, "post_post", json!({ "foo": "a", "bar": "b; c" })).await;
    assert_eq!((cookies.line(), cookies.header("cookie")), ("POST /post", Some("foo=a; bar=b%3B%20c")));
}

#[tokio::test]
async fn a_style_without_explode_has_its_default() {
    let arguments = json!({ "primitive": "a", "array": ["b", "c"], "object": { "foo": "d", "bar": "e" } });
    for (version, names) in [
        ("3.0", &["primitive", "array", "array", "object"][..]),
        ("3.1", &["primitive", "array", "array", "foo", "bar"]),
    ] {
        let Some(openapi) = example(&format!("{version}/json/schema-encoding-style.json")) else { return };
        let sent = sent(openapi, "encoding_form", arguments.clone()).await;
        let found = sent.text().split("; name=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
        assert_eq!(found.collect::<Vec<_>>(), names, "{version}: {}", sent.text());
    }
}

#[test]
fn the_nearest_server_with_its_variables_is_used() {
    let Some(variables) = example("3.0/json/server-variables.json") else { return };
    let tools = variables.build().unwrap();
    for (tool, wanted) in [
        ("post_global", "https://demo.example.com:443/v2/global"),
        ("post_operation", "https://httpbin.com/anything/demo/operation"),
        ("put_path", "https://httpbin.com/anything/common/demo/path"),
        ("put_combo", "https://httpbin.com/anything/demo/combo"),
    ] {
        assert_eq!(url(&tools, tool), wanted);
    }
    let levels = example("3.0/json/server-path-level.json").unwrap();
    let tools = levels.document_url("https://docs.test/api/openapi.json").build().unwrap();
    for (tool, wanted) in [
        ("get_relative-path-server", "https://docs.test/v2/relative-path-server"),
        ("get_relative-operation-server", "https://docs.test/v3/relative-operation-server"),
        ("get_operation-server-variables", "https://operation.example.com/v3/operation-server-variables"),
        ("get_path-item-server-source", "https://path-item-ref.example.com/path-item-server-source"),
        ("get_path-item-ref-server", "https://path-item-ref.example.com/path-item-ref-server"),
        ("get_empty-operation-servers", "https://empty-operation-path.example.com/empty-operation-servers"),
        ("get_empty-path-item-servers", "https://demo.example.com:443/v2/empty-path-item-servers"),
    ] {
        assert_eq!(url(&tools, tool), wanted);
    }
}

#[tokio::test]
async fn the_first_alternative_of_several_schemes_is_sent_that_is_complete() {
    for (tool, secrets, header, cookie, query) in [
        ("post_anything_or", &["apiKey_header", "oauth2"][..], ["Bearer oauth2", ""], "", ""),
        ("post_anything_or", &["apiKey_header"], ["", "apiKey_header"], "", ""),
        (
            "post_anything_and-or",
            &["oauth2_alternate", "apiKey_header"],
            ["Bearer oauth2_alternate", ""],
            "",
            "",
        ),
        (
            "post_anything_many-and-or",
            &["apiKey_cookie", "apiKey_header", "apiKey_query"],
            ["", "apiKey_header"],
            "api_key=apiKey_cookie",
            "?apiKey=apiKey_query",
        ),
        ("post_anything_many-and-or", &["bearer_jwt", "apiKey_query"], ["Bearer bearer_jwt", ""], "", ""),
    ] {
        let Some(openapi) = example("3.0/json/security-multiple.json") else { return };
        let openapi = secrets.iter().fold(openapi, |openapi, name| openapi.secret(*name, *name));
        let sent = sent(openapi, tool, json!({})).await;
        let found =
            ["authorization", "x-api-key", "cookie"].map(|name| sent.header(name).unwrap_or_default());
        assert_eq!(found, [header[0], header[1], cookie], "{tool} {secrets:?}");
        assert!(sent.line().ends_with(&format!("{}{query}", &tool[14..])), "{}", sent.line());
    }
}

#[tokio::test]
async fn a_choice_of_schemas_is_one_argument() {
    let Some(choice) = example("3.0/json/polymorphism.json") else { return };
    let cat = json!({ "body": { "pet_type": "Cat", "hunts": true } });
    assert_eq!(sent(choice, "patch_pets", cat).await.text(), r#"{"pet_type":"Cat","hunts":true}"#);
    let named = example("3.0/json/discriminators.json").unwrap();
    let tool = "oneOfWithTopLevelDiscriminatorAndMapping";
    let one = json!({ "body": { "discrim": "Option One", "optionone": 1 } });
    let sent = sent(named, tool, one).await;
    assert_eq!(
        (sent.line(), sent.text()),
        ("PATCH /discriminator-with-mapping", r#"{"discrim":"Option One","optionone":1}"#)
    );
}

#[test]
fn webhooks_are_not_called() {
    let Some(webhooks) = example("3.1/json/webhooks.json") else { return };
    let tools = webhooks.build().unwrap();
    assert_eq!((tools.tools().count(), tools.left_out()), (0, &[][..]));
    assert!(tools.warnings()[0].contains("no `paths`"), "{:?}", tools.warnings());
    let tools = example("3.1/yaml/train-travel.yaml").unwrap().build().unwrap();
    let names: Vec<_> = tools.tools().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names[..4], ["get-stations", "get-trips", "get-bookings", "create-booking"]);
}

#[test]
fn large_documents_are_tools_that_hosts_accept() {
    for (path, count) in [
        ("@figma/rest-api-spec/openapi/openapi.yaml", 54),
        ("@octokit/openapi/generated/api.github.com.json", 1_223),
    ] {
        let Some(file) = package(path) else { return };
        let tools = OpenApi::from_file(Path::new(&file)).unwrap().build().unwrap();
        assert_eq!(tools.left_out(), [], "{path}");
        assert_eq!(tools.tools().count(), count, "{path}");
        assert_accepted(&tools, path);
    }
}
