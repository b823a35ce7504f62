//! Which operations become tools, and what they are called.

use pintle::Server;
use pintle_openapi::{OpenApi, OpenApiError};
use serde_json::json;

use crate::support::{document, tools};

fn pets() -> OpenApi {
    let paths = json!({
        "/pets": {
            "get": { "operationId": "listPets", "tags": ["pets"], "summary": "Lists pets.", "description": "Lists pets. All of them." },
            "post": { "operationId": "addPet", "tags": ["pets", "admin"], "summary": "Adds a pet." },
        },
        "/pets/{id}": {
            "get": { "parameters": [{ "name": "id", "in": "path" }], "deprecated": true },
            "delete": { "operationId": "pets/remove", "parameters": [{ "name": "id", "in": "path" }], "x-mcp-name": "remove_pet" },
        },
        "/internal": { "get": { "operationId": "internal", "x-mcp-exclude": true } },
    });
    OpenApi::from_value(document(paths)).unwrap().base("https://api.test")
}

fn names(openapi: &OpenApi) -> Vec<String> {
    openapi.build().unwrap().tools().map(|tool| tool.name.clone()).collect()
}

#[test]
fn operations_are_chosen_by_id_path_method_and_tag() {
    let all = ["listPets", "addPet", "get_pets_id", "remove_pet"];
    assert_eq!(names(&pets()), all);
    assert_eq!(names(&pets().include("tag:pets")), all[..2]);
    assert_eq!(names(&pets().include("get /pets*").exclude("listPets")), all[2..3]);
    assert_eq!(names(&pets().exclude("/pets/*")), all[..2]);
    assert_eq!(names(&pets().include("internal")), ["internal"]);
    assert_eq!(names(&pets().include("*Pet*")), all[..2]);
}

#[test]
fn tools_are_renamed_and_described() {
    let openapi = pets()
        .prefix("pets_")
        .rename("addPet", "add a pet")
        .describe("GET /pets/{id}", "Returns a pet.")
        .rename("GET /pets/{id}", "get");
    let tools = openapi.build().unwrap();
    let shown: Vec<_> =
        tools.tools().map(|tool| (tool.name.as_str(), tool.description.as_deref().unwrap())).collect();
    let wanted = [
        ("pets_listPets", "Lists pets. All of them."),
        ("pets_add_a_pet", "Adds a pet."),
        ("pets_get", "Deprecated. Returns a pet."),
        ("pets_remove_pet", "DELETE /pets/{id}"),
    ];
    assert_eq!(shown, wanted);
    assert_eq!(tools.operation("pets_get"), Some("GET /pets/{id}"));
    let long = pets().prefix("p".repeat(60)).build().unwrap();
    assert!(long.tools().all(|tool| tool.name.len() <= 64));
}

#[test]
fn a_rule_about_nothing_is_an_error() {
    let error = |openapi: OpenApi| match openapi.build() {
        Err(error @ OpenApiError::Setting { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    assert!(error(pets().include("getPets")).contains("no operation is `getPets`"));
    assert!(error(pets().rename("listpets", "x")).contains("no operation `listpets`"));
    assert!(error(pets().secret("token", "s3cret")).contains("`token`: there is no such security scheme"));
    assert!(error(pets().header("a b", "c")).contains("a name that none can have"));
}

#[test]
fn an_operation_that_cannot_be_called_is_left_out_alone() {
    let get = |operation: serde_json::Value| json!({ "get": operation });
    let parameter = |parameter: serde_json::Value| get(json!({ "parameters": [parameter] }));
    let paths = json!({
        "/good": get(json!({})),
        "/undeclared/{id}": get(json!({})),
        "/matrix": parameter(json!({ "name": "a", "in": "query", "style": "matrix" })),
        "/form": parameter(json!({ "name": "a", "in": "formData" })),
        "/header": parameter(json!({ "name": "a b", "in": "header" })),
        "/nameless": parameter(json!({ "in": "query" })),
        "/lost": parameter(json!({ "$ref": "#/components/parameters/None" })),
        "/far": { "$ref": "https://example.com/paths.yaml" },
        "/server": get(json!({ "servers": [{ "url": "ftp://a.test" }] })),
        "/mixed": { "post": { "requestBody": { "content": { "multipart/mixed": {} } } } },
        "/trace": { "trace": {} },
        "/number": { "get": 5 },
        "/..": get(json!({})),
    });
    let tools = tools(document(paths));
    assert_eq!(tools.tools().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["get_good"]);
    assert_eq!(tools.left_out().len(), 12, "{:?}", tools.left_out());
    for (operation, reason) in [
        ("GET /undeclared/{id}", "no parameter is it"),
        ("GET /matrix", "the style `matrix`"),
        ("GET /lost", "leads nowhere"),
        ("/far", "nothing is fetched"),
        ("TRACE /trace", "not supported"),
    ] {
        let found = tools.left_out().iter().find(|one| one.operation == operation).unwrap();
        assert!(found.reason.contains(reason), "{found:?}");
    }
    let lint = Server::new("s", "1").provider(tools).lint();
    assert!(format!("{lint:?}").contains("is left out"), "{lint:?}");
}

#[test]
fn new_words_of_3_2_are_left_out_with_a_warning() {
    let mut document = document(json!({ "/a": {
        "query": { "operationId": "q" }, "additionalOperations": { "COPY": {} },
        "get": { "parameters": [{ "name": "all", "in": "querystring", "content": {} }] },
        "post": {
            "requestBody": { "content": { "multipart/form-data": { "prefixEncoding": [] } } },
            "responses": { "200": { "content": { "application/jsonl": { "itemSchema": {} } } } },
        },
    } }));
    document["openapi"] = "3.2.0".into();
    document["$self"] = "https://example.com/api".into();
    let tools = tools(document);
    assert_eq!(tools.tools().count(), 2);
    assert_eq!(tools.left_out().len(), 2);
    for (warning, expected) in tools.warnings().iter().zip([
        "3.2 is read as 3.1",
        "`$self` is ignored",
        "`all` is a whole query string",
        "`POST /a`: `itemSchema` of a media type is ignored",
        "`POST /a`: `prefixEncoding` of a media type is ignored",
    ]) {
        assert!(warning.contains(expected), "{:?}", tools.warnings());
    }
    assert_eq!(tools.warnings().len(), 5);
}

#[test]
fn many_tools_are_worth_a_warning() {
    let paths: serde_json::Map<_, _> =
        (0..41).map(|number| (format!("/{number}"), json!({ "get": {} }))).collect();
    let tools = tools(document(paths.into()));
    assert!(tools.warnings()[0].contains("41 tools"), "{:?}", tools.warnings());
}

#[tokio::test]
async fn a_list_has_pages() {
    let paths: serde_json::Map<_, _> =
        (0..25).map(|number| (format!("/{number}"), json!({ "get": {} }))).collect();
    let server = Server::new("s", "1").page_size(10).provider(tools(document(paths.into())));
    let client = pintle::Client::new("c", "1").connect(server.in_process().unwrap()).await.unwrap();
    let names: Vec<_> = client.tools().await.unwrap().into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, (0..25).map(|number| format!("get_{number}")).collect::<Vec<_>>());
}
