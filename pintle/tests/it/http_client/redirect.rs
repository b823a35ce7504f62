//! Redirects: followed where nothing can leak.

use pintle::{Error, transport::Delivery};

use crate::support::scripted_http::{client, script};

#[tokio::test(start_paused = true)]
async fn a_redirect_that_keeps_the_request_and_the_origin_is_followed() {
    let (mut server, http) = script();
    let connection = server.opens(client(), http.bearer("s3cret").unwrap()).await;
    let (called, ()) = tokio::join!(connection.call_tool("t", ()), async {
        let asked = server.receives("tools/call").await;
        let body = asked.text().to_owned();
        asked.answer(308, &[("location", "/mcp/")], "moved");
        let asked = server.line("POST http://server.test/mcp/").await;
        assert_eq!(asked.text(), body);
        asked.answer(307, &[("location", "http://server.test:80/v2/mcp?x=1")], "");
        let asked = server.line("POST http://server.test:80/v2/mcp?x=1").await;
        assert_eq!(asked.header("authorization"), Some("Bearer s3cret"));
        assert_eq!(asked.header("mcp-method"), Some("tools/call"));
        asked.result(r#"{"resultType":"complete","content":[]}"#);
    });
    called.unwrap();
}

#[tokio::test(start_paused = true)]
async fn any_other_redirect_is_an_error() {
    let (mut server, http) = script();
    let connection = server.opens(client(), http).await;
    for (status, location, text) in [
        (
            307,
            "https://server.test/mcp",
            "status 307: the server redirected to another origin; connect to that one if it is intended",
        ),
        (
            308,
            "//evil.test/mcp",
            "status 308: the server redirected to another origin; connect to that one if it is intended",
        ),
        (
            302,
            "/login",
            "status 302: only redirects with status 307 or 308 keep the request; the server sent another status",
        ),
        (
            303,
            "/mcp/",
            "status 303: only redirects with status 307 or 308 keep the request; the server sent another status",
        ),
    ] {
        let (called, ()) = tokio::join!(connection.call_tool("t", ()), async {
            server.receives("tools/call").await.answer(status, &[("location", location)], "");
        });
        let Err(Error::Failed(failed)) = called else { panic!("{text}") };
        assert_eq!(failed.to_string(), format!("`http://server.test/mcp` answered with {text}"));
        assert_eq!(failed.delivery, Delivery::Never);
    }
}

#[tokio::test(start_paused = true)]
async fn redirects_in_circles_end() {
    let (mut server, http) = script();
    let connection = server.opens(client(), http).await;
    let (called, ()) = tokio::join!(connection.call_tool("t", ()), async {
        for _ in 0..6 {
            server.receives("tools/call").await.answer(307, &[("location", "/mcp")], "");
        }
    });
    let error = called.unwrap_err().to_string();
    assert_eq!(
        error,
        "`http://server.test/mcp` was reached by more than 5 redirects: connect to where they lead"
    );
}
