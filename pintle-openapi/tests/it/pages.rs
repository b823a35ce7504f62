//! The next page of an answer, as APIs tell it.

use pintle_openapi::OpenApi;
use serde_json::{Value, json};

use crate::support::{Answer, Api, Sent, connect, operation};

const JSON: &str = "200 OK\r\ncontent-type: application/json";

/// Returns `GET /x` with these parameters in the query.
fn document(parameters: &[(&str, Value)]) -> Value {
    let parameters: Vec<_> = parameters
        .iter()
        .map(|(name, schema)| json!({ "name": name, "in": "query", "schema": schema }))
        .collect();
    operation("get", "/x", json!({ "parameters": parameters }))
}

fn number() -> Value {
    json!({ "type": "integer" })
}

fn text() -> Value {
    json!({ "type": "string" })
}

/// Returns the notes of a call that reads up to so many pages, what it returns, and what was sent.
async fn read(
    api: &Api,
    document: Value,
    arguments: Value,
    pages: usize,
) -> (Vec<String>, Value, Vec<String>) {
    let tools = OpenApi::from_value(document).unwrap().base(&api.origin).pages(pages).build().unwrap();
    let result = connect(tools).await.call_tool("x", arguments).await.unwrap();
    let text = result.text();
    let mut lines = text.lines();
    let value = serde_json::from_str(lines.next().unwrap()).unwrap();
    let sent = api.take().iter().map(|sent| sent.line().to_owned()).collect();
    (lines.map(|line| line.trim_start_matches("note: ").to_owned()).collect(), value, sent)
}

async fn answering(head: &'static str, body: Value) -> Api {
    Api::new(move |_: &Sent| -> Answer { (head, body.to_string().into_bytes()) }).await
}

/// Returns the note about a single page.
async fn note(head: &'static str, body: Value, parameters: &[(&str, Value)], arguments: Value) -> String {
    let api = answering(head, body).await;
    let (notes, _, sent) = read(&api, document(parameters), arguments, 1).await;
    assert_eq!(sent.len(), 1);
    notes.join("; ")
}

#[tokio::test]
async fn a_note_tells_the_arguments_of_the_next_page() {
    let linked = "200 OK\r\ncontent-type: application/json\r\nlink: </x?page=1>; rel=\"prev\", </x?page=3&q=a+b>; rel=next";
    let page = || ("page", number());
    let query = [page(), ("q", text())];
    assert_eq!(
        note(linked, json!([]), &query, json!({ "page": 2 })).await,
        "the next page is that of `page` = 3, `q` = \"a b\""
    );
    let unknown = "there are more pages, which no arguments lead to: the program can read them with `pages`";
    assert_eq!(note(linked, json!([]), &[page()], json!({})).await, unknown);
    for last in [
        "200 OK\r\ncontent-type: application/json\r\nlink: </x?page=1>; rel=\"prev first\"",
        "200 OK\r\ncontent-type: application/json\r\nlink: <https://other.test/x?page=2>; rel=next",
        "200 OK\r\ncontent-type: application/json\r\nlink: <//other.test/x?page=2>; rel=next",
    ] {
        assert_eq!(note(last, json!([1]), &[page()], json!({})).await, "", "{last}");
    }
    for (body, parameter, wanted) in [
        (json!({ "next": "?page=5", "results": [1] }), page(), "the next page is that of `page` = 5"),
        (
            json!({ "_links": { "next": { "href": "/x?page=5" } } }),
            page(),
            "the next page is that of `page` = 5",
        ),
        (json!({ "next": null, "results": [1] }), page(), ""),
        (
            json!({ "next_cursor": "a\"b", "items": [] }),
            ("cursor", text()),
            "the next page is that of `cursor` = \"a\\\"b\"",
        ),
        (
            json!({ "meta": { "nextCursor": "a" } }),
            ("cursor", text()),
            "the next page is that of `cursor` = \"a\"",
        ),
        (
            json!({ "nextPageToken": "t" }),
            ("pageToken", text()),
            "the next page is that of `pageToken` = \"t\"",
        ),
        (json!({ "nextPageToken": "" , "items": [1] }), ("pageToken", text()), ""),
        (json!({ "nextPageToken": "t" }), ("cursor", text()), ""),
        (json!({ "next_cursor": "x".repeat(5_000) }), ("cursor", text()), ""),
        (json!([1, 2]), page(), "the next page, if there is one, is that of `page` = 2"),
        (json!({ "data": [1], "total_pages": 3 }), page(), "the next page is that of `page` = 2"),
        (json!({ "data": [1], "meta": { "total_pages": 1 } }), page(), ""),
        (json!({ "data": [1], "has_more": false }), page(), ""),
        (json!({ "data": [1], "has_more": true }), page(), "the next page is that of `page` = 2"),
        (json!({ "data": [] }), page(), ""),
        (
            json!({ "data": { "rows": [1, 2, 3] } }),
            ("offset", number()),
            "the next page, if there is one, is that of `offset` = 3",
        ),
        (json!({ "rows": [1, 2, 3], "total": 9 }), ("skip", number()), "the next page is that of `skip` = 3"),
        (json!({ "rows": [1, 2, 3], "total": 3 }), ("offset", number()), ""),
        (json!([1]), ("q", text()), ""),
    ] {
        assert_eq!(note(JSON, body.clone(), &[parameter], json!({})).await, wanted, "{body}");
    }
    let sized = || vec![("offset", number()), ("limit", json!({ "type": "integer", "default": 2 }))];
    for (arguments, wanted) in [
        (json!({}), "the next page, if there is one, is that of `offset` = 2"),
        (json!({ "offset": 4 }), "the next page, if there is one, is that of `offset` = 6"),
        (json!({ "limit": 3 }), ""),
    ] {
        assert_eq!(note(JSON, json!([1, 2]), &sized(), arguments).await, wanted);
    }
}

#[tokio::test]
async fn only_what_reads_has_pages_and_a_cut_list_names_the_size() {
    let api = answering(JSON, json!({ "next_cursor": "a", "items": [1] })).await;
    let mut post = document(&[("cursor", text())]);
    let operation = post["paths"]["/x"]["get"].take();
    post["paths"]["/x"] = json!({ "post": operation });
    assert_eq!(read(&api, post, json!({}), 5).await.0, [""; 0]);
    let api = answering(JSON, json!((1_000..1_100).collect::<Vec<_>>())).await;
    let document = document(&[("offset", number()), ("per_page", number())]);
    let tools = OpenApi::from_value(document).unwrap().base(&api.origin).max_result(51).build().unwrap();
    let text = connect(tools).await.call_tool("x", ()).await.unwrap().text();
    assert!(text.contains("only the first 10 of 100 items"), "{text}");
    assert!(
        text.contains("; ask for fewer at a time with `per_page` to get the rest\nnote: the next page, if"),
        "{text}"
    );
}

#[tokio::test]
async fn pages_are_read_as_one_list() {
    let numbered = Api::new(|sent: &Sent| -> Answer {
        let page: u64 = sent.line().rsplit('=').next().and_then(|page| page.parse().ok()).unwrap_or(1);
        (
            JSON,
            json!({ "page": page, "items": [page * 10, page * 10 + 1], "total_pages": 4 })
                .to_string()
                .into_bytes(),
        )
    })
    .await;
    let paged = || document(&[("page", number())]);
    let (notes, value, sent) = read(&numbered, paged(), json!({}), 3).await;
    assert_eq!(value, json!({ "page": 3, "items": [10, 11, 20, 21, 30, 31], "total_pages": 4 }));
    assert_eq!(notes, ["the next page is that of `page` = 4"]);
    assert_eq!(sent, ["GET /x", "GET /x?page=2", "GET /x?page=3"]);
    let (notes, value, _) = read(&numbered, paged(), json!({ "page": 3 }), 9).await;
    assert_eq!((notes, &value["items"]), (vec![], &json!([30, 31, 40, 41])));
    // Links that no arguments lead to, at another path of the same origin.
    let linked = Api::new(|sent: &Sent| -> Answer {
        let head = match sent.line() {
            "GET /x" => "200 OK\r\ncontent-type: application/json\r\nlink: </y/2?after=b>; rel=next",
            _ => JSON,
        };
        (head, b"[1]".to_vec())
    })
    .await;
    let (notes, value, sent) = read(&linked, paged(), json!({}), 3).await;
    assert_eq!(
        (value, &sent[..2]),
        (json!([1, 1]), &["GET /x".to_owned(), "GET /y/2?after=b".to_owned()][..])
    );
    assert_eq!(notes, [""; 0]);
    // What a link leaves out is what the program has: a key in the query.
    let mut keyed = paged();
    keyed["components"] =
        json!({ "securitySchemes": { "k": { "type": "apiKey", "in": "query", "name": "key" } } });
    keyed["security"] = json!([{ "k": [] }]);
    let echoing = Api::new(|sent: &Sent| -> Answer {
        let head = match sent.line() {
            "GET /x?key=a%26b" => "200 OK\r\ncontent-type: application/json\r\nlink: </y>; rel=next",
            "GET /y?key=a%26b" => {
                "200 OK\r\ncontent-type: application/json\r\nlink: </z?key=a%26b&p=3>; rel=next"
            }
            "GET /z?key=a%26b&p=3" => JSON,
            other => panic!("{other}"),
        };
        (head, b"[1]".to_vec())
    })
    .await;
    let openapi = OpenApi::from_value(keyed).unwrap().base(&echoing.origin).secret("k", "a&b").pages(5);
    let result = connect(openapi.build().unwrap()).await.call_tool("x", ()).await.unwrap();
    assert_eq!((result.text().as_str(), echoing.take().len()), ("[1,1,1]", 3));
}

#[tokio::test]
async fn what_stops_the_pages_is_told_and_what_was_read_is_kept() {
    let cursors = || document(&[("cursor", text())]);
    // Every page has the same cursor.
    let looping = answering(JSON, json!({ "next_cursor": "a", "items": [1] })).await;
    let (notes, value, sent) = read(&looping, cursors(), json!({}), 9).await;
    assert_eq!((value["items"].clone(), sent.len(), notes), (json!([1, 1]), 2, vec![]));
    let failing = Api::new(|sent: &Sent| -> Answer {
        match sent.line() {
            "GET /x" => {
                (JSON, json!({ "next_cursor": "a", "items": ["x".repeat(600)] }).to_string().into_bytes())
            }
            "GET /x?cursor=a" => (JSON, json!({ "next_cursor": "b", "items": [] }).to_string().into_bytes()),
            _ => ("500 Internal Server Error\r\ncontent-type: text/plain", b"broken".to_vec()),
        }
    })
    .await;
    let (notes, value, sent) = read(&failing, cursors(), json!({}), 9).await;
    assert_eq!((value["items"].as_array().unwrap().len(), sent.len()), (1, 3));
    assert_eq!(
        notes,
        [
            "the next page is not here: HTTP 500 Internal Server Error",
            "broken",
            "the next page is that of `cursor` = \"b\""
        ]
    );
    let large = Api::new(|sent: &Sent| -> Answer {
        let next = if sent.line().ends_with('b') { "a" } else { "b" };
        (JSON, json!({ "next_cursor": next, "items": ["x".repeat(600)] }).to_string().into_bytes())
    })
    .await;
    let tools = OpenApi::from_value(cursors()).unwrap().base(&large.origin).pages(9).max_answer(1_500);
    let result = connect(tools.build().unwrap()).await.call_tool("x", ()).await.unwrap();
    assert_eq!(
        (result.structured_content.unwrap_or_default()["items"].as_array().map(Vec::len), large.take().len()),
        (Some(2), 3)
    );
    let text = result.content.iter().map(|block| format!("{block:?}")).collect::<String>();
    assert!(text.contains("the next page is not here: all would have more than 1500 bytes"), "{text}");
}
