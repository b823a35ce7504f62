//! The requests that styles make, byte by byte.

use serde_json::{Value, json};

use crate::support::{Api, call, operation};

/// Sends a parameter with a value, and returns the request.
async fn sent(api: &Api, path: &str, parameter: &Value, value: &Value) -> crate::support::Sent {
    let document = operation("get", path, json!({ "parameters": [parameter] }));
    let name = parameter["name"].as_str().unwrap();
    let result = call(api, document, json!({ name: value })).await;
    assert_eq!(result.is_error, None, "{parameter} {value}: {}", result.text());
    api.only()
}

fn values() -> [Value; 3] {
    [json!("blue"), json!(["blue", "black", "brown"]), json!({ "R": 100, "G": 200, "B": 150 })]
}

#[tokio::test]
async fn a_path_has_values_in_every_style() {
    let api = Api::plain().await;
    for (style, explode, wanted) in [
        ("simple", false, ["blue", "blue,black,brown", "R,100,G,200,B,150"]),
        ("simple", true, ["blue", "blue,black,brown", "R=100,G=200,B=150"]),
        ("label", false, [".blue", ".blue,black,brown", ".R,100,G,200,B,150"]),
        ("label", true, [".blue", ".blue.black.brown", ".R=100.G=200.B=150"]),
        ("matrix", false, [";color=blue", ";color=blue,black,brown", ";color=R,100,G,200,B,150"]),
        ("matrix", true, [";color=blue", ";color=blue;color=black;color=brown", ";R=100;G=200;B=150"]),
    ] {
        for (value, wanted) in values().iter().zip(wanted) {
            let parameter = json!({ "name": "color", "in": "path", "required": true, "style": style, "explode": explode });
            let sent = sent(&api, "/a/{color}/b", &parameter, value).await;
            assert_eq!(sent.line(), format!("GET /a/{wanted}/b"), "{style} {explode}");
        }
    }
}

#[tokio::test]
async fn a_query_has_values_in_every_style() {
    let api = Api::plain().await;
    let exploded = ["color=blue", "color=blue&color=black&color=brown", "R=100&G=200&B=150"];
    for (style, explode, wanted) in [
        ("form", Some(true), exploded),
        ("form", None, exploded),
        ("form", Some(false), ["color=blue", "color=blue,black,brown", "color=R,100,G,200,B,150"]),
        (
            "spaceDelimited",
            Some(false),
            ["color=blue", "color=blue%20black%20brown", "color=R%20100%20G%20200%20B%20150"],
        ),
        (
            "spaceDelimited",
            None,
            ["color=blue", "color=blue%20black%20brown", "color=R%20100%20G%20200%20B%20150"],
        ),
        (
            "pipeDelimited",
            Some(false),
            ["color=blue", "color=blue%7Cblack%7Cbrown", "color=R%7C100%7CG%7C200%7CB%7C150"],
        ),
        ("pipeDelimited", Some(true), exploded),
        (
            "deepObject",
            Some(true),
            [
                "color=blue",
                "color%5B0%5D=blue&color%5B1%5D=black&color%5B2%5D=brown",
                "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150",
            ],
        ),
    ] {
        for (value, wanted) in values().iter().zip(wanted) {
            let mut parameter = json!({ "name": "color", "in": "query", "style": style });
            if let Some(explode) = explode {
                parameter["explode"] = explode.into();
            }
            let sent = sent(&api, "/a", &parameter, value).await;
            assert_eq!(sent.line(), format!("GET /a?{wanted}"), "{style} {explode:?}");
        }
    }
}

#[tokio::test]
async fn deep_objects_keep_the_names_of_all_levels() {
    let api = Api::plain().await;
    let parameter = json!({ "name": "filter", "in": "query", "style": "deepObject", "explode": true });
    let value = json!({ "a": { "b": { "c": 1 } }, "l": [{ "x": "&" }, "y"], "n": null });
    let sent = sent(&api, "/a", &parameter, &value).await;
    let wanted = "filter%5Ba%5D%5Bb%5D%5Bc%5D=1&filter%5Bl%5D%5B0%5D%5Bx%5D=%26&filter%5Bl%5D%5B1%5D=y";
    assert_eq!(sent.line(), format!("GET /a?{wanted}"));
}

#[tokio::test]
async fn headers_and_cookies_have_values_in_their_styles() {
    let api = Api::plain().await;
    for (explode, header, cookie) in [
        (
            false,
            ["blue", "blue,black,brown", "R,100,G,200,B,150"],
            ["X-Color=blue", "X-Color=blue,black,brown", "X-Color=R,100,G,200,B,150"],
        ),
        (
            true,
            ["blue", "blue,black,brown", "R=100,G=200,B=150"],
            ["X-Color=blue", "X-Color=blue; X-Color=black; X-Color=brown", "R=100; G=200; B=150"],
        ),
    ] {
        for ((value, header), cookie) in values().iter().zip(header).zip(cookie) {
            let parameter = |place: &str| json!({ "name": "X-Color", "in": place, "explode": explode });
            assert_eq!(sent(&api, "/", &parameter("header"), value).await.header("x-color"), Some(header));
            assert_eq!(sent(&api, "/", &parameter("cookie"), value).await.header("cookie"), Some(cookie));
        }
    }
}

#[tokio::test]
async fn what_separates_is_encoded_in_values() {
    let api = Api::plain().await;
    let odd = json!(["a,b", "c d", "e|f", "é&=#?/%2F+"]);
    let encoded = ["a%2Cb", "c%20d", "e%7Cf", "%C3%A9%26%3D%23%3F%2F%252F%2B"];
    for (place, style, between) in
        [("query", "form", ","), ("query", "spaceDelimited", "%20"), ("query", "pipeDelimited", "%7C")]
    {
        let parameter = json!({ "name": "q[]", "in": place, "style": style, "explode": false });
        let document = operation("get", "/a", json!({ "parameters": [parameter] }));
        assert_eq!(call(&api, document, json!({ "q": odd })).await.is_error, None);
        assert_eq!(api.only().line(), format!("GET /a?q%5B%5D={}", encoded.join(between)), "{style}");
    }
    let reserved = json!({ "name": "q", "in": "query", "allowReserved": true });
    let line = sent(&api, "/a", &reserved, &json!("a/b:c?d=e;f,g&h#i[j]+k l%")).await.line().to_owned();
    assert_eq!(line, "GET /a?q=a/b:c?d=e;f,g%26h%23i%5Bj%5D%2Bk%20l%25");
}

#[tokio::test]
async fn parameters_with_content_are_json() {
    let api = Api::plain().await;
    for (place, wanted) in
        [("query", "/a?f=%7B%22a%22%3A%5B1%2C%22x%22%5D%7D"), ("header", "/a"), ("cookie", "/a")]
    {
        let content = json!({ "application/json": { "schema": { "type": "object" } } });
        let parameter = json!({ "name": "f", "in": place, "content": content });
        let sent = sent(&api, "/a", &parameter, &json!({ "a": [1, "x"] })).await;
        assert_eq!(sent.line(), format!("GET {wanted}"));
        if place == "header" {
            assert_eq!(sent.header("f"), Some(r#"{"a":[1,"x"]}"#));
        }
        if place == "cookie" {
            assert_eq!(sent.header("cookie"), Some("f=%7B%22a%22%3A%5B1%2C%22x%22%5D%7D"));
        }
    }
}

#[tokio::test]
async fn parts_of_a_form_have_the_styles_of_a_query_since_3_1() {
    let api = Api::plain().await;
    let properties = json!({ "l": { "type": "array" }, "o": { "type": "object" } });
    let encoding =
        json!({ "l": { "style": "pipeDelimited" }, "o": { "style": "deepObject", "explode": true } });
    let content = json!({ "schema": { "type": "object", "properties": properties }, "encoding": encoding });
    let body = json!({ "requestBody": { "content": { "multipart/form-data": content } } });
    let mut document = operation("post", "/a", body);
    let arguments = json!({ "l": ["a b", "c&d"], "o": { "x\"y": "=" } });
    let head = "Content-Disposition: form-data; name=";
    assert_eq!(call(&api, document.clone(), arguments.clone()).await.is_error, None);
    let text = api.only().text().to_owned();
    assert!(text.contains(&format!("{head}\"l\"\r\n\r\na b|c&d\r\n")), "{text}");
    assert!(text.contains(&format!("{head}\"o[x%22y]\"\r\n\r\n=\r\n")), "{text}");
    document["openapi"] = "3.0.3".into();
    assert_eq!(call(&api, document, arguments).await.is_error, None);
    let text = api.only().text().to_owned();
    assert_eq!(text.matches(&format!("{head}\"l\"\r\n")).count(), 2, "{text}");
    assert!(text.contains("Content-Type: application/json\r\n\r\n{\"x\\\"y\":\"=\"}"), "{text}");
}

#[tokio::test]
async fn null_and_what_is_empty_is_not_sent_in_a_query() {
    let api = Api::plain().await;
    for (value, wanted) in [
        (json!(null), "GET /a"),
        (json!([]), "GET /a"),
        (json!({}), "GET /a"),
        (json!(""), "GET /a?q="),
        (json!([null, 1]), "GET /a?q=1"),
        (json!(false), "GET /a?q=false"),
        (json!([{ "a": 1 }]), "GET /a?q=%7B%22a%22%3A1%7D"),
    ] {
        let sent = sent(&api, "/a", &json!({ "name": "q", "in": "query" }), &value).await;
        assert_eq!(sent.line(), wanted, "{value}");
    }
}
