//! The requests of every style, for the documents that show them all: each is written here by hand, from the rules of OpenAPI.
//!
//! Those are RFC 6570's, as 3.0.4 and 3.1.1 say: the tables of older texts have another `label`.

use pintle_openapi::OpenApi;
use serde_json::{Map, Value, json};

use crate::{
    packages::example,
    support::{Api, Sent, connect},
};

/// The id of an operation, its arguments, and what is sent.
type Row = (&'static str, &'static [&'static str], &'static str);

const ALL: &[&str] = &["primitive", "array", "object"];
const PARTS: &[&str] = &["array", "object"];

/// Where `explode` gives several values, a cookie is several cookies.
const PARAMETERS: &[Row] = &[
    (
        "cookies_standard",
        ALL,
        "GET /cookies\ncookie: primitive=a%20b; array=blue; array=black; array=brown; name=R; description=1%262",
    ),
    (
        "cookies_form_nonExploded",
        ALL,
        "GET /cookies\ncookie: primitive=a%20b; array=blue,black,brown; object=name,R,description,1%262",
    ),
    (
        "cookies_form_exploded",
        ALL,
        "GET /cookies\ncookie: primitive=a%20b; array=blue; array=black; array=brown; name=R; description=1%262",
    ),
    (
        "headers_standard",
        ALL,
        "GET /anything/headers\nprimitive: a b\narray: blue,black,brown\nobject: name,R,description,1&2",
    ),
    (
        "headers_simple_nonExploded",
        ALL,
        "GET /anything/headers/simple\nprimitive: a b\narray: blue,black,brown\nobject: name,R,description,1&2",
    ),
    (
        "headers_simple_exploded",
        ALL,
        "POST /anything/headers/simple\nprimitive: a b\narray: blue,black,brown\nobject: name=R,description=1&2",
    ),
    ("paths_standard", ALL, "GET /anything/path/a%20b/blue,black,brown/name,R,description,1%262"),
    (
        "paths_matrix_nonExploded",
        ALL,
        "GET /anything/path/matrix/;primitive=a%20b/;array=blue,black,brown/;object=name,R,description,1%262",
    ),
    (
        "paths_matrix_exploded",
        ALL,
        "POST /anything/path/matrix/;primitive=a%20b/;array=blue;array=black;array=brown/;name=R;description=1%262",
    ),
    (
        "paths_label_nonExploded",
        ALL,
        "GET /anything/path/label/.a%20b/.blue,black,brown/.name,R,description,1%262",
    ),
    (
        "paths_label_exploded",
        ALL,
        "POST /anything/path/label/.a%20b/.blue.black.brown/.name=R.description=1%262",
    ),
    (
        "paths_simple_nonExploded",
        ALL,
        "GET /anything/path/simple/a%20b/blue,black,brown/name,R,description,1%262",
    ),
    (
        "paths_simple_exploded",
        ALL,
        "POST /anything/path/simple/a%20b/blue,black,brown/name=R,description=1%262",
    ),
    (
        "query_standard",
        ALL,
        "GET /anything/query?primitive=a%20b&array=blue&array=black&array=brown&name=R&description=1%262",
    ),
    (
        "query_form_nonExploded",
        ALL,
        "GET /anything/query/form?primitive=a%20b&array=blue,black,brown&object=name,R,description,1%262",
    ),
    (
        "query_form_exploded",
        ALL,
        "POST /anything/query/form?primitive=a%20b&array=blue&array=black&array=brown&name=R&description=1%262",
    ),
    (
        "query_spaceDelimited_nonExploded",
        PARTS,
        "GET /anything/query/spaceDelimited?array=blue%20black%20brown&object=name%20R%20description%201%262",
    ),
    (
        "query_pipeDelimited_nonExploded",
        PARTS,
        "GET /anything/query/pipeDelimited?array=blue%7Cblack%7Cbrown&object=name%7CR%7Cdescription%7C1%262",
    ),
    // Other values than objects have no such style.
    (
        "query_deepObject_nonExploded",
        &["object"],
        "GET /anything/query/deepObject?object%5Bname%5D=R&object%5Bdescription%5D=1%262",
    ),
];

/// A part for each item, and JSON for an object: 3.0 knows styles of URL encoding only.
const FORMS_30: &[Row] = &[
    (
        "formData_standard",
        ALL,
        "POST /anything/form-data\n\nprimitive: a b\narray: blue\narray: black\narray: brown\nobject (application/json): {\"foo\":\"R\",\"bar\":\"1&2\"}",
    ),
    (
        "formData_form_nonExploded",
        ALL,
        "POST /anything/form-data/form\n\nprimitive: a b\narray: blue\narray: black\narray: brown\nobject (application/json): {\"foo\":\"R\",\"bar\":\"1&2\"}",
    ),
    (
        "form_data_form_exploded",
        ALL,
        "PUT /anything/form-data/form\n\nprimitive: a b\narray: blue\narray: black\narray: brown\nobject (application/json): {\"foo\":\"R\",\"bar\":\"1&2\"}",
    ),
    (
        "formData_spaceDelimited_nonExploded",
        PARTS,
        "POST /anything/form-data/spaceDelimited\n\narray: blue\narray: black\narray: brown\nobject (application/json): {\"foo\":\"R\",\"bar\":\"1&2\"}",
    ),
    (
        "form_data_pipeDelimited_nonExploded",
        PARTS,
        "POST /anything/form-data/pipeDelimited\n\narray: blue\narray: black\narray: brown\nobject (application/json): {\"foo\":\"R\",\"bar\":\"1&2\"}",
    ),
    (
        "form_data_deepObject_exploded",
        &["object"],
        "POST /anything/form-data/deepObject\n\nobject (application/json): {\"foo\":\"R\",\"bar\":\"1&2\"}",
    ),
];

/// In 3.1 a style of a part is that of a query, and nothing is encoded.
const FORMS_31: &[Row] = &[
    (
        "formData_standard",
        ALL,
        "POST /anything/form-data\n\nprimitive: a b\narray: blue\narray: black\narray: brown\nobject (application/json): {\"foo\":\"R\",\"bar\":\"1&2\"}",
    ),
    (
        "formData_form_nonExploded",
        ALL,
        "POST /anything/form-data/form\n\nprimitive: a b\narray: blue,black,brown\nobject: foo,R,bar,1&2",
    ),
    (
        "form_data_form_exploded",
        ALL,
        "PUT /anything/form-data/form\n\nprimitive: a b\narray: blue\narray: black\narray: brown\nfoo: R\nbar: 1&2",
    ),
    (
        "form_data_pipeDelimited_nonExploded",
        PARTS,
        "POST /anything/form-data/pipeDelimited\n\narray: blue|black|brown\nobject: foo|R|bar|1&2",
    ),
];

/// The twins have other methods here.
const FORMS_31_JSON: &[Row] = &[
    (
        "formData_spaceDelimited_nonExploded",
        PARTS,
        "GET /anything/form-data/spaceDelimited\n\narray: blue black brown\nobject: foo R bar 1&2",
    ),
    (
        "form_data_deepObject_exploded",
        &["object"],
        "POST /anything/form-data/deepObject\n\nobject[foo]: R\nobject[bar]: 1&2",
    ),
];
const FORMS_31_YAML: &[Row] = &[
    (
        "formData_spaceDelimited_nonExploded",
        PARTS,
        "POST /anything/form-data/spaceDelimited\n\narray: blue black brown\nobject: foo R bar 1&2",
    ),
    (
        "form_data_deepObject_exploded",
        &["object"],
        "GET /anything/form-data/deepObject\n\nobject[foo]: R\nobject[bar]: 1&2",
    ),
];

/// Writes a request with its parameters, and the parts of a form by their names.
fn shown(sent: &Sent) -> String {
    let mut text = sent.line().to_owned();
    for (name, value) in sent.head.lines().skip(1).filter_map(|line| line.split_once(": ")) {
        if !["host", "accept", "user-agent", "content-length", "content-type"].contains(&name) {
            text += &format!("\n{name}: {value}");
        }
    }
    if sent.body.is_empty() {
        return text;
    }
    let boundary =
        sent.header("content-type").unwrap().strip_prefix("multipart/form-data; boundary=").unwrap();
    let body = sent.text().strip_suffix(&format!("--{boundary}--\r\n")).unwrap();
    text.push('\n');
    for part in body.split(&format!("--{boundary}\r\n")).skip(1) {
        let (head, value) = part.split_once("\r\n\r\n").unwrap();
        let mut lines = head.lines();
        let name = lines.next().unwrap().strip_prefix("Content-Disposition: form-data; name=\"").unwrap();
        text += &format!("\n{}", name.strip_suffix('"').unwrap());
        for line in lines {
            text += &format!(" ({})", line.strip_prefix("Content-Type: ").unwrap());
        }
        text += &format!(": {}", value.strip_suffix("\r\n").unwrap());
    }
    text
}

async fn assert_sent(
    openapi: OpenApi,
    rows: impl IntoIterator<Item = &'static Row>,
    object: Value,
    source: &str,
) {
    let api = Api::plain().await;
    let tools = openapi.base(&api.origin).build().unwrap();
    assert_eq!(tools.left_out(), [], "{source}");
    assert_eq!(tools.tools().count(), 25, "{source}");
    let client = connect(tools).await;
    let values = json!({ "primitive": "a b", "array": ["blue", "black", "brown"], "object": object });
    for (id, names, wanted) in rows {
        let arguments: Map<String, Value> =
            names.iter().map(|name| ((*name).to_owned(), values[name].clone())).collect();
        let result = client.call_tool(*id, arguments).await.unwrap();
        assert_eq!(result.is_error, None, "{source} {id}: {}", result.text());
        assert_eq!(shown(&api.only()), *wanted, "{source} {id}");
    }
}

#[tokio::test]
async fn parameters_are_sent_as_their_styles_say() {
    for source in ["3.0/json", "3.0/yaml", "3.1/json", "3.1/yaml"] {
        let name = format!("{source}/parameters-style.{}", &source[4..]);
        let Some(openapi) = example(&name) else { return };
        assert_sent(openapi, PARAMETERS, json!({ "name": "R", "description": "1&2" }), source).await;
    }
}

#[tokio::test]
async fn parts_of_forms_are_sent_as_their_styles_say() {
    for (source, rows, more) in [
        ("3.0/json", FORMS_30, &[][..]),
        ("3.0/yaml", FORMS_30, &[]),
        ("3.1/json", FORMS_31, FORMS_31_JSON),
        ("3.1/yaml", FORMS_31, FORMS_31_YAML),
    ] {
        let name = format!("{source}/parameters-style.{}", &source[4..]);
        let Some(openapi) = example(&name) else { return };
        assert_sent(openapi, rows.iter().chain(more), json!({ "foo": "R", "bar": "1&2" }), source).await;
    }
}
