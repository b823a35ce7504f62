//! Operations that are read as resources.

use pintle::{Connection, Server, types::schema::ResourceBody};
use pintle_openapi::{ApiTools, OpenApi};
use serde_json::{Value, json};

use crate::support::{Answer, Api, Sent, connect, document};

fn pets() -> Value {
    let number = json!({ "type": "integer" });
    let id = json!({ "name": "pet-id", "in": "path", "schema": number });
    let query = |name: &str, schema: Value| json!({ "name": name, "in": "query", "schema": schema });
    let mut search = query("q", json!({ "type": "string" }));
    search["required"] = true.into();
    let mut list = query("ids", json!({ "type": "array", "items": {} }));
    list["required"] = true.into();
    document(json!({
        "/Pets": { "get": { "operationId": "list", "summary": "Lists pets.", "tags": ["read"], "parameters": [
            query("limit", number), query("tags", json!({ "type": "array", "items": {} })),
        ] } },
        "/pets/{pet-id}": {
            "parameters": [id],
            "get": { "operationId": "pet", "tags": ["read"] },
            "delete": { "operationId": "remove", "tags": ["read"] },
        },
        "/pets/{pet-id}/photo": { "parameters": [id], "get": { "operationId": "photo", "tags": ["read"] } },
        "/search": { "get": { "operationId": "search", "tags": ["read"], "parameters": [search] } },
        "/many": { "get": { "operationId": "many", "tags": ["read"], "parameters": [list] } },
        "/health": { "get": { "operationId": "health", "tags": ["read"] } },
    }))
}

fn built(openapi: OpenApi) -> ApiTools {
    openapi.base("https://api.test").name("Pets").build().unwrap()
}

async fn api() -> (Api, Connection) {
    let api = Api::new(|sent: &Sent| -> Answer {
        match sent.line() {
            "GET /pets/7/photo" => ("200 OK\r\ncontent-type: image/png", b"\x89PNG".to_vec()),
            "GET /pets/9" => ("404 Not Found\r\ncontent-type: text/plain", b"no pet".to_vec()),
            "GET /health" => ("200 OK\r\ncontent-type: text/plain; charset=utf-8", b"fine".to_vec()),
            _ => ("200 OK\r\ncontent-type: application/json", br#"{"id":7, "mail":"a@b"}"#.to_vec()),
        }
    })
    .await;
    let openapi = OpenApi::from_value(pets()).unwrap().resources("tag:read").fields("pet", ["id"]);
    let tools = openapi.base(&api.origin).name("pets").build().unwrap();
    let connection = connect(tools).await;
    (api, connection)
}

/// Reads a resource. Returns its text or base64, its media type, and what was sent.
async fn read(api: &Api, connection: &Connection, uri: &str) -> (String, Option<String>, String) {
    let mut result = connection.read_resource(uri).await.unwrap();
    let contents = result.contents.remove(0);
    assert_eq!(contents.uri, uri);
    let body = match contents.body {
        ResourceBody::Text(text) => text,
        ResourceBody::Blob(base64) => format!("base64 {base64}"),
    };
    (body, contents.mime_type, api.only().line().to_owned())
}

#[test]
fn what_is_read_is_listed_as_resources_and_templates_and_not_as_tools() {
    let tools = built(OpenApi::from_value(pets()).unwrap().resources("tag:read").prefix("p_"));
    let names: Vec<_> = tools.tools().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["p_remove", "p_many"]);
    let resources: Vec<_> =
        tools.resources().iter().map(|one| (one.uri.as_str(), one.name.as_str())).collect();
    assert_eq!(resources, [("pets:///Pets", "p_list"), ("pets:///health", "p_health")]);
    let templates: Vec<_> = tools.templates().iter().map(|one| one.uri_template.as_str()).collect();
    let wanted = [
        "pets:///Pets{?limit}",
        "pets:///pets/{pet_id}",
        "pets:///pets/{pet_id}/photo",
        "pets:///search{?q}",
    ];
    assert_eq!(templates, wanted);
    assert_eq!(tools.resources()[0].description.as_deref(), Some("Lists pets."));
    assert_eq!(tools.warnings(), ["`GET /many` is a tool and no resource: no URI can have `ids`"]);
    Server::new("s", "1").provider(tools).check().unwrap();
    let only = built(OpenApi::from_value(pets()).unwrap());
    assert_eq!((only.tools().count(), only.resources().len(), only.templates().len()), (7, 0, 0));
    let error = OpenApi::from_value(pets()).unwrap().resources("GET /none").build().unwrap_err().to_string();
    assert!(error.contains("no operation is `GET /none`"), "{error}");
}

#[tokio::test]
async fn a_uri_is_read_by_the_request_that_it_stands_for() {
    let (api, connection) = api().await;
    assert_eq!(connection.resources().await.unwrap().len(), 2);
    assert_eq!(connection.resource_templates().await.unwrap().len(), 4);
    let json = Some("application/json".to_owned());
    let whole = r#"{"id":7, "mail":"a@b"}"#.to_owned();
    for (uri, body, media_type, line) in [
        ("pets:///health", "fine".to_owned(), Some("text/plain".to_owned()), "GET /health"),
        ("pets:///Pets", whole.clone(), json.clone(), "GET /Pets"),
        ("pets:///Pets?limit=5", whole.clone(), json.clone(), "GET /Pets?limit=5"),
        ("pets:///pets/7", r#"{"id":7}"#.to_owned(), json.clone(), "GET /pets/7"),
        (
            "pets:///pets/7/photo",
            "base64 iVBORw==".to_owned(),
            Some("image/png".to_owned()),
            "GET /pets/7/photo",
        ),
        ("pets:///search?q=a%20%26b", whole, json, "GET /search?q=a%20%26b"),
    ] {
        assert_eq!(read(&api, &connection, uri).await, (body, media_type, line.to_owned()), "{uri}");
    }
}

#[tokio::test]
async fn what_no_uri_stands_for_is_not_sent() {
    let (api, connection) = api().await;
    for (uri, expected) in [
        ("pets:///pets/x", "`/pet-id` should be an integer"),
        ("pets:///search", "`/q` is missing"),
        ("pets:///pets/..%2F..%2Fhealth", "no such resource"),
        ("pets:///pets/%2e%2e", "no such resource"),
        ("pets:///PETS", "no such resource"),
        ("pets:///health?x=1", "no such resource"),
        ("pets:///many", "no such resource"),
        ("https://api.test/health", "no such resource"),
    ] {
        let error = connection.read_resource(uri).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{uri}: {error}");
        assert_eq!(api.take().len(), 0, "{uri}");
    }
    let missing = connection.read_resource("pets:///pets/9").await.unwrap_err().to_string();
    assert!(missing.contains("HTTP 404 Not Found\nno pet"), "{missing}");
}
