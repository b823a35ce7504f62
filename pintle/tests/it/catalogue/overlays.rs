//! Tools of one session, and of one principal.

use pintle::{
    Server,
    server::{Authenticated, Caller, Cx, Entry, SessionError, ToolError, tool},
};
use serde_json::{Value, json};

use crate::support::{
    eras::{ALL, Client, R1, R2, R3, R4, R5},
    line_client::Raw,
};

const SESSIONS: [&str; 4] = [R1, R2, R3, R4];

fn server() -> Server {
    let unlock = |cx: Cx| async move {
        let session = cx.session().ok_or("there is no session")?;
        session.add_tool(tool("secret", || async { "of the session" }))?;
        session.add_tool(tool("common", || async { "of the session" }))?;
        Ok::<_, ToolError>("unlocked")
    };
    let lock = |cx: Cx| async move {
        let session = cx.session().ok_or("there is no session")?;
        let removed = ["secret", "secret"].map(|name| session.remove_tool(name));
        session.remove_tool("common");
        Ok::<_, ToolError>(format!("{removed:?}"))
    };
    Server::new("s", "0")
        .tool(tool("unlock", unlock))
        .tool(tool("common", || async { "of everybody" }))
        .tool(tool("lock", lock))
}

async fn client(server: &Server, caller: Caller, revision: &'static str) -> Client {
    Client::over(Raw::known(server, caller), revision, json!({})).await
}

/// Returns the names of all tools, page by page.
async fn names(client: &mut Client) -> Vec<Vec<String>> {
    let (mut pages, mut params) = (Vec::new(), json!({}));
    loop {
        let page = client.call("tools/list", params).await;
        let tools = page["result"]["tools"].as_array().unwrap_or_else(|| panic!("{page}")).iter();
        pages.push(tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect());
        match page["result"].get("nextCursor") {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => return pages,
        }
    }
}

async fn called(client: &mut Client, name: &str) -> Value {
    let answer = client.call("tools/call", json!({"name": name})).await;
    answer
        .get("error")
        .map_or_else(|| answer["result"]["content"][0]["text"].clone(), |error| error["message"].clone())
}

#[tokio::test]
async fn a_session_has_its_own_tools() {
    let server = server();
    for revision in SESSIONS {
        let mut one = client(&server, Caller::local(), revision).await;
        let mut other = client(&server, Caller::local(), revision).await;
        assert_eq!(called(&mut one, "unlock").await, "unlocked");
        assert_eq!(one.receive().await["method"], "notifications/tools/list_changed", "{revision}");
        assert_eq!(names(&mut one).await, [["secret", "common", "unlock", "lock"]]);
        assert_eq!(called(&mut one, "secret").await, "of the session");
        assert_eq!(called(&mut one, "common").await, "of the session", "it goes before that of everybody");
        assert_eq!(names(&mut other).await, [["unlock", "common", "lock"]]);
        assert_eq!(called(&mut other, "common").await, "of everybody");
        assert_eq!(called(&mut other, "secret").await, "no such tool: `secret`");
        assert!(other.received().is_empty(), "{revision}: only the session is notified");
        assert_eq!(called(&mut one, "lock").await, "[true, false]");
        assert_eq!(called(&mut one, "common").await, "of everybody");
        assert_eq!(names(&mut one).await, [["unlock", "common", "lock"]]);
    }
    let mut stateless = client(&server, Caller::local(), R5).await;
    assert_eq!(called(&mut stateless, "unlock").await, "there is no session");
    assert_eq!(names(&mut stateless).await, [["unlock", "common", "lock"]]);
}

#[tokio::test]
async fn a_principal_has_its_own_tools_in_every_era() {
    let server = server();
    server.add_tool_for("ann", tool("secret", || async { "of ann" })).unwrap();
    server.add_tool_for("ann", tool("common", || async { "of ann" })).unwrap();
    let error = server.add_tool_for("ann", tool("secret", || async { "twice" })).unwrap_err();
    assert_eq!(error.to_string(), "a tool named `secret` is already registered; choose another name");
    for revision in ALL {
        let mut ann = client(&server, Caller::new().principal("ann"), revision).await;
        assert_eq!(names(&mut ann).await, [["secret", "common", "unlock", "lock"]], "{revision}");
        assert_eq!(called(&mut ann, "secret").await, "of ann");
        assert_eq!(called(&mut ann, "common").await, "of ann");
        for caller in [Caller::new().principal("bob"), Caller::new(), Caller::local()] {
            let mut other = client(&server, caller, revision).await;
            assert_eq!(names(&mut other).await, [["unlock", "common", "lock"]], "{revision}");
            assert_eq!(called(&mut other, "common").await, "of everybody");
            assert_eq!(called(&mut other, "secret").await, "no such tool: `secret`");
        }
    }
    for caller in [Caller::new().principal("ann"), Caller::new()] {
        let list = client(&server, caller, R5).await.call("tools/list", json!({})).await;
        assert_eq!(list["result"]["cacheScope"], "private", "{list}");
    }
    let remove = |principal, name| server.remove_tool_for(principal, name);
    assert!(remove("ann", "secret") && !remove("ann", "secret"));
    assert!(remove("ann", "common") && !remove("bob", "common"));
    let mut ann = client(&server, Caller::new().principal("ann"), R5).await;
    assert_eq!(names(&mut ann).await, [["unlock", "common", "lock"]]);
}

#[tokio::test]
async fn a_session_goes_before_its_principal_and_pages_are_filled_from_all() {
    let server = server().page_size(2).filter(|scope, entry| {
        scope.principal.is_none() || !matches!(entry, Entry::Tool(tool) if tool.name == "hidden")
    });
    for name in ["secret", "hidden", "more"] {
        server.add_tool_for("ann", tool(name, || async { "of ann" })).unwrap();
    }
    for revision in SESSIONS {
        let mut ann = client(&server, Caller::new().principal("ann"), revision).await;
        assert_eq!(called(&mut ann, "secret").await, "of ann");
        assert_eq!(called(&mut ann, "unlock").await, "unlocked");
        assert_eq!(called(&mut ann, "secret").await, "of the session");
        assert_eq!(called(&mut ann, "hidden").await, "no such tool: `hidden`");
        assert_eq!(names(&mut ann).await, [vec!["secret", "common"], vec!["more", "unlock"], vec!["lock"]]);
        let foreign = ann.call("tools/list", json!({"cursor": "cwAA"})).await;
        assert_eq!(foreign["error"]["code"], -32602);
    }
    let mut ann = client(&server, Caller::new().principal("ann"), R5).await;
    assert_eq!(names(&mut ann).await, [vec!["secret", "more"], vec!["unlock", "common"], vec!["lock"]]);
}

#[tokio::test]
async fn what_a_tool_of_a_session_requires_is_checked_and_its_number_is_limited() {
    let server = server();
    let caller = Caller::new().with(Authenticated::new("ann").rights(|right| right == "read"));
    let mut ann = client(&server, caller.principal("ann"), R4).await;
    let session = server.sessions().remove(0);
    session.add_tool(tool("read", || async { "read" }).requires(["read"])).unwrap();
    session.add_tool(tool("write", || async { "written" }).requires(["write"])).unwrap();
    assert_eq!(called(&mut ann, "read").await, "read");
    assert_eq!(called(&mut ann, "write").await, "`write` needs more than the caller may");
    let error = session.add_tool(tool("read", || async { "twice" })).unwrap_err();
    assert_eq!(error.to_string(), "a tool named `read` is already registered; choose another name");
    for number in 2..256 {
        session.add_tool(tool(format!("tool{number}"), || async { "" })).unwrap();
    }
    let error = session.add_tool(tool("one_more", || async { "" })).unwrap_err();
    assert_eq!(error.to_string(), "the session has 256 tools; remove one first");
    drop(ann);
    tokio::task::yield_now().await;
    while !session.is_closed() {
        tokio::task::yield_now().await;
    }
    assert_eq!(session.add_tool(tool("late", || async { "" })).unwrap_err(), SessionError::Ended);
}
