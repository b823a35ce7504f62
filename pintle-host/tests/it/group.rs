//! Several servers as one.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use pintle::{
    Client, Connection, Error, Server,
    client::{Change, Event},
    server::{Arguments, Serving, prompt, resource, tool},
    transport::memory,
    types::schema::PromptMessage,
};
use pintle_host::{
    Group, GroupChanges, GroupEvent, MemberState, Naming, Redial,
    config::{ConfigFile, Variables},
};
use pintle_testing::Peer;
use serde_json::json;
use tokio::time::{Duration, Instant};

fn client() -> Client {
    Client::new("test", "1")
}

/// A server with tools that return their own name and its.
fn server(name: &'static str, tools: &[&'static str]) -> Server {
    let route = |own: &&'static str| {
        let own = *own;
        tool(own, move |Arguments(arguments)| async move { format!("{name}: {own} {}", arguments.as_str()) })
    };
    tools.iter().map(route).fold(Server::new(name, "1"), Server::tool)
}

async fn connect(server: &Server) -> Connection {
    client().connect(server.in_process().unwrap()).await.unwrap()
}

/// The next event. A test that waits for ever says less than one that fails; time is paused.
async fn next(changes: &mut GroupChanges) -> GroupEvent {
    let next = tokio::time::timeout(Duration::from_secs(3600), changes.next());
    next.await.expect("an event was expected").expect("the group was closed")
}

/// A server that can be stopped, and how often it was connected to.
#[derive(Clone, Default)]
struct Flaky {
    dialled: Arc<AtomicUsize>,
    /// How many attempts fail before one succeeds.
    fails: usize,
    running: Arc<Mutex<Option<Serving>>>,
}

impl Flaky {
    async fn dial(self) -> pintle::Result<Connection> {
        let attempt = self.dialled.fetch_add(1, Ordering::SeqCst);
        if attempt < self.fails {
            return Err(Error::Io(std::io::Error::other(format!("attempt {attempt} failed"))));
        }
        let (ours, theirs) = memory();
        *self.running.lock().unwrap() = Some(server("flaky", &["hello"]).serve(theirs)?);
        client().connect(ours).await
    }

    fn stop(&self) {
        self.running.lock().unwrap().take().unwrap().handle().close(Duration::ZERO);
    }

    fn add(&self, group: &Group) {
        let flaky = self.clone();
        group.add_dialled("flaky", move || flaky.clone().dial()).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn tools_and_prompts_have_names_that_lead_back() {
    let files = server("files", &["status", "fs.read"])
        .prompt(prompt("hello", || async { PromptMessage::user("hi") }));
    let files = files.resource(resource("notes://a", "a", || async { "a" }));
    let group = Group::new();
    group.add("git", connect(&server("git", &["status", "log"])).await).unwrap();
    group.add("my files", connect(&files).await).unwrap();
    let listing = group.tools().await;
    let names: Vec<_> = listing.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["git__status", "git__log", "my_files__status", "my_files__fs_read"]);
    assert_eq!(
        (listing.items[3].member.as_str(), listing.items[3].own_name.as_str()),
        ("my files", "fs.read")
    );
    assert!(listing.failed.is_empty());
    for (name, message) in [("git__status", "git: status {}"), ("my_files__fs_read", "files: fs.read {}")] {
        assert_eq!(group.call_tool(name, json!({})).await.unwrap().text(), message);
    }
    let prompts = group.prompts().await;
    assert_eq!(prompts.iter().map(|prompt| prompt.name.as_str()).collect::<Vec<_>>(), ["my_files__hello"]);
    assert!(prompts.failed.is_empty(), "a server without prompts is no failure");
    assert_eq!(group.get_prompt("my_files__hello", ()).await.unwrap().messages.len(), 1);
    let resources = group.resources().await;
    assert_eq!(
        (resources.items[0].member.as_str(), resources.items[0].uri.as_str()),
        ("my files", "notes://a")
    );
    assert_eq!(group.read_resource("my files", "notes://a").await.unwrap().contents.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_name_can_be_called_without_listing_first_and_an_unknown_one_is_explained() {
    let group = Group::new();
    group.add("git", connect(&server("git", &["a.b", "a_b", "status"])).await).unwrap();
    assert_eq!(group.call_tool("git__status", ()).await.unwrap().text(), "git: status {}");
    // Neither is the other.
    let error = group.call_tool("git__a_b", ()).await.unwrap_err();
    assert!(error.to_string().starts_with("the group has no tool `git__a_b`"), "{error}");
    let names: Vec<_> = group.tools().await.iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(group.call_tool(&names[0], ()).await.unwrap().text(), "git: a.b {}");
    assert_eq!(group.call_tool(&names[1], ()).await.unwrap().text(), "git: a_b {}");
    let error = group.call_tool("git__statsu", ()).await.unwrap_err();
    assert_eq!(error.to_string(), "the group has no tool `git__statsu`: did you mean `git__status`?");
    assert!(matches!(error, Error::Misuse(_)));
    let error = group.get_prompt("git__x", ()).await.unwrap_err();
    assert_eq!(error.to_string(), "the group has no prompt `git__x`");
    let error = group.connection("gti").await.unwrap_err();
    assert_eq!(error.to_string(), "the group has no member `gti`: it has `git`");
}

#[tokio::test(start_paused = true)]
async fn one_that_is_broken_does_not_break_the_others() {
    let group = Group::new();
    group.add("good", connect(&server("good", &["a"])).await).unwrap();
    let (mut silent, transport) = Peer::new();
    let client = client();
    let opening = async {
        let probe = silent.receives("server/discover").await;
        let result = json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 0,
            "cacheScope": "private"
        });
        silent.answers(&probe, result).await;
    };
    let (connection, ()) = tokio::join!(client.connect(transport), opening);
    group.add("silent", connection.unwrap()).unwrap();
    group
        .add_dialled("absent", || async { Err(Error::Io(std::io::Error::other("no such program"))) })
        .unwrap();
    group.ready().await;
    let listing = group.tools().await;
    assert_eq!(listing.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["good__a"]);
    let failed: Vec<_> = listing.failed.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(failed, ["absent", "silent"]);
    assert!(matches!(listing.failed[0].1, Error::Closed(_)));
    assert!(matches!(listing.failed[1].1, Error::Timeout(_)));
    let error = group.call_tool("absent__x", ()).await.unwrap_err().to_string();
    assert!(error.contains("the tools of `absent` could not be listed"), "{error}");
    assert!(error.contains("no such program"), "{error}");
    assert!(group.call_tool("good__a", ()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_start_is_tried_again_with_growing_delays() {
    let group = Group::with(Naming::new(), Redial::new(Duration::from_secs(1), Duration::from_secs(3)));
    group.add("good", connect(&server("good", &["a"])).await).unwrap();
    let flaky = Flaky { fails: 4, ..Flaky::default() };
    let started = Instant::now();
    let mut changes = group.changes();
    flaky.add(&group);
    group.ready().await;
    let members = group.members();
    assert!(
        matches!(&members["flaky"], MemberState::Closed { reason, .. } if reason.contains("attempt 0 failed"))
    );
    assert_eq!(members["good"].to_string(), "open, 2026-07-28");
    assert!(members["flaky"].to_string().starts_with("closed, to be opened again: "), "{}", members["flaky"]);
    let mut seen = Vec::new();
    while seen.len() < 5 {
        match next(&mut changes).await {
            GroupEvent::Closed { member, .. } => seen.push((member, started.elapsed().as_secs())),
            GroupEvent::Opened { member } if member == "flaky" => {
                seen.push((member, started.elapsed().as_secs()))
            }
            _ => {}
        }
    }
    let seconds: Vec<_> = seen.iter().map(|(_, seconds)| *seconds).collect();
    assert_eq!(seconds, [0, 1, 3, 6, 9]);
    assert_eq!(group.call_tool("flaky__hello", ()).await.unwrap().text(), "flaky: hello {}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_went_away_comes_back() {
    let group = Group::new();
    let flaky = Flaky::default();
    flaky.add(&group);
    assert!(group.call_tool("flaky__hello", ()).await.is_ok());
    let mut changes = group.changes();
    flaky.stop();
    let closed = next(&mut changes).await;
    assert!(matches!(&closed, GroupEvent::Closed { member, .. } if member == "flaky"), "{closed:?}");
    // Its name is still known, and the error says what is the matter.
    let error = group.call_tool("flaky__hello", ()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the connection is closed: the server `flaky` has not been connected for 0 s: the peer disconnected; \
         the next attempt is in 1 s"
    );
    assert_eq!(next(&mut changes).await, GroupEvent::Opened { member: "flaky".into() });
    assert!(group.call_tool("flaky__hello", ()).await.is_ok());
    assert_eq!(flaky.dialled.load(Ordering::SeqCst), 2);
    // At once, if somebody cannot wait.
    flaky.stop();
    loop {
        if let GroupEvent::Closed { .. } = next(&mut changes).await {
            break;
        }
    }
    let before = Instant::now();
    group.redial("flaky").unwrap();
    while next(&mut changes).await != (GroupEvent::Opened { member: "flaky".into() }) {}
    assert_eq!(before.elapsed(), Duration::ZERO);
    // What was closed on purpose stays closed.
    group.connection("flaky").await.unwrap().close().await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(flaky.dialled.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_a_connection_that_is_being_opened() {
    let group = Group::new();
    group
        .add_dialled("slow", || async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            Ok(connect(&server("slow", &["a"])).await)
        })
        .unwrap();
    assert!(matches!(group.members()["slow"], MemberState::Opening));
    assert_eq!(group.call_tool("slow__a", ()).await.unwrap().text(), "slow: a {}");
    // One whose opening panics does not keep anybody waiting.
    group.add_dialled("panics", || async { panic!("on purpose") }).unwrap();
    let error = group.connection("panics").await.unwrap_err().to_string();
    assert!(error.contains("opening a connection to it panicked"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn changes_say_whose_they_are() {
    let (one, two) = (server("one", &["a"]), server("two", &["a"]));
    let group = Group::new();
    group.add("one", connect(&one).await).unwrap();
    let mut changes = group.changes();
    group.add("two", connect(&two).await).unwrap();
    // The subscriptions are being made meanwhile.
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
    two.add_tool(tool("b", || async { "b" })).unwrap();
    two.add_tool(tool("c", || async { "c" })).unwrap();
    one.add_tool(tool("b", || async { "b" })).unwrap();
    let mut seen = Vec::new();
    while seen.len() < 2 {
        if let GroupEvent::Server { member, event: Event::Changed(Change::Tools) } = next(&mut changes).await
        {
            seen.push(member);
        }
    }
    seen.sort();
    assert_eq!(seen, ["one", "two"]);
    assert_eq!(group.tools().await.items.len(), 5);
    group.close().await;
    while changes.next().await.is_some() {}
    assert!(group.members().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_resource_is_subscribed_to_on_every_connection() {
    let server = Server::new("s", "1").resource(resource("notes://a", "a", || async { "a" }));
    let running: Arc<Mutex<Option<Serving>>> = Arc::default();
    let dial = {
        let (server, running) = (server.clone(), running.clone());
        move || {
            let (server, running) = (server.clone(), running.clone());
            async move {
                let (ours, theirs) = memory();
                *running.lock().unwrap() = Some(server.serve(theirs)?);
                client().connect(ours).await
            }
        }
    };
    let group = Group::new();
    let mut changes = group.changes();
    group.add_dialled("s", dial).unwrap();
    group.subscribe("s", "notes://a").await.unwrap();
    for round in 0..3 {
        // The subscriptions are being made meanwhile.
        for _ in 0..500 {
            tokio::task::yield_now().await;
        }
        server.resource_updated("notes://a");
        loop {
            match next(&mut changes).await {
                GroupEvent::Server { event: Event::Changed(Change::Resource(uri)), .. } => {
                    assert_eq!(&*uri, "notes://a", "{round}");
                    break;
                }
                GroupEvent::Unobserved { reason, .. } => panic!("{reason}"),
                _ => {}
            }
        }
        running.lock().unwrap().take().unwrap().handle().close(Duration::ZERO);
        while next(&mut changes).await != (GroupEvent::Opened { member: "s".into() }) {}
    }
    group.unsubscribe("s", "notes://a").await.unwrap();
    assert!(group.subscribe("x", "notes://a").await.is_err());
    for at in 0..256 {
        group.subscribe("s", &format!("notes://{at}")).await.unwrap();
    }
    let error = group.subscribe("s", "notes://more").await.unwrap_err().to_string();
    assert_eq!(error, "`s` already has 256 subscriptions: cancel one");
}

#[tokio::test(start_paused = true)]
async fn members_are_named_once_and_bounded() {
    let group = Group::new();
    let connection = connect(&server("a", &["a"])).await;
    assert!(matches!(group.add("", connection.clone()), Err(Error::Misuse(_))));
    group.add("a", connection.clone()).unwrap();
    let error = group.add("a", connection.clone()).unwrap_err();
    assert_eq!(error.to_string(), "the group already has a member named `a`: choose another name");
    for at in 1..256 {
        group.add(&format!("m{at}"), connection.clone()).unwrap();
    }
    assert!(group.add("one more", connection).unwrap_err().to_string().contains("already has 256 members"));
    assert!(group.remove("a") && !group.remove("a"));
    assert!(group.call_tool("a__a", ()).await.is_err());
}

#[tokio::test]
async fn a_whole_file_is_a_group() {
    let serving = server("remote", &["open", "shut"]).serve_http("127.0.0.1:0").await.unwrap();
    let text = json!({"mcpServers": {
        "remote": {"type": "http", "url": format!("http://{}/mcp", serving.address()), "disabledTools": ["shut"]},
        "absent": {"command": "/no/such/program"},
        "unset": {"url": "http://127.0.0.1/${PINTLE_NO_SUCH_VARIABLE}"},
        "wrong": {"command": 1},
        "disabled": {"command": "x", "disabled": true}
    }});
    let file = ConfigFile::parse("mcp.json", &text.to_string()).unwrap();
    let group = Group::open(&client(), &file).await.unwrap();
    let states: Vec<_> = group
        .members()
        .into_iter()
        .map(|(name, state)| match state {
            MemberState::Open(_) => (name, "open".to_owned(), false),
            MemberState::Closed { reason, retry, .. } => (name, reason, retry.is_some()),
            _ => (name, "opening".to_owned(), false),
        })
        .collect();
    let expected = [
        (
            "absent",
            "the connection failed: no such program: `/no/such/program`: install it or give its path",
            true,
        ),
        ("remote", "open", false),
        (
            "unset",
            "`mcp.json`, line 1, server `unset`: the variable `PINTLE_NO_SUCH_VARIABLE` is not set: set it, or write \
             `${PINTLE_NO_SUCH_VARIABLE:-a default}`",
            false,
        ),
        ("wrong", "`mcp.json`, line 1, server `wrong`: `command` has to be a string, not a number", false),
    ];
    assert_eq!(states, expected.map(|(name, state, retried)| (name.to_owned(), state.to_owned(), retried)));
    let tools = group.tools().await;
    assert_eq!(tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["remote__open"]);
    assert_eq!(group.call_tool("remote__open", ()).await.unwrap().text(), "remote: open {}");
    assert!(group.call_tool("remote__shut", ()).await.is_err(), "a tool that is disabled is not called");
    let again = group.add_file(&client(), &file, &Variables::none());
    assert!(again.unwrap_err().to_string().contains("already has a member named `remote`"));
    group.close().await;
}
