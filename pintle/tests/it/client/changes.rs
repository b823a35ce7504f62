//! Changes on the server's side: events, subscriptions, and what must not be served from the cache any more.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use pintle::{
    Error,
    client::{Change, Event, Reconnect},
};
use pintle_testing::Peer;
use serde_json::{Value, json};

use crate::support::scripted_server::{BOTH, SESSION, STATELESS, accept, client, open, settle, text};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

fn everything() -> Value {
    json!({
        "tools": {"listChanged": true}, "prompts": {"listChanged": true},
        "resources": {"listChanged": true, "subscribe": true}
    })
}

/// The server's side of a listen request: acknowledges all that is wished for.
async fn acknowledge(peer: &mut Peer) -> Value {
    let listen = peer.receives("subscriptions/listen").await;
    let granted = &listen["params"]["notifications"];
    let params = json!({"_meta": {SUBSCRIPTION: listen["id"]}, "notifications": granted});
    peer.notifies("notifications/subscriptions/acknowledged", params).await;
    listen
}

/// Tells of a change, in the era's words.
async fn tell(peer: &mut Peer, method: &str, listen: Option<&Value>, mut params: Value) {
    if let Some(listen) = listen {
        params["_meta"] = json!({SUBSCRIPTION: listen["id"]});
    }
    peer.notifies(method, params).await;
}

#[tokio::test(start_paused = true)]
async fn changes_are_events_in_both_eras() {
    for revision in BOTH {
        let (server, mut peer) = open(&client(), revision, everything()).await;
        let script = async {
            if revision == SESSION {
                return None;
            }
            let listen = acknowledge(&mut peer).await;
            assert_eq!(
                listen["params"]["notifications"],
                json!({"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true})
            );
            Some(listen)
        };
        let (changes, listen) = tokio::join!(server.changes(), script);
        let mut changes = changes.unwrap();
        for _ in 0..10 {
            tell(&mut peer, "notifications/tools/list_changed", listen.as_ref(), json!({})).await;
        }
        tell(&mut peer, "notifications/prompts/list_changed", listen.as_ref(), json!({})).await;
        settle().await;
        assert_eq!(changes.next().await, Some(Event::Changed(Change::Tools)));
        assert_eq!(changes.next().await, Some(Event::Changed(Change::Prompts)));
        peer.notifies("acme/news", json!({"n": 1})).await;
        assert!(
            matches!(changes.next().await, Some(Event::Notification(news)) if news.method == "acme/news")
        );
        drop(peer);
        assert_eq!(changes.next().await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_resource_is_watched_in_both_eras() {
    for revision in BOTH {
        let (server, mut peer) = open(&client(), revision, everything()).await;
        let script = async {
            if revision == SESSION {
                let subscribe = peer.receives("resources/subscribe").await;
                assert_eq!(subscribe["params"], json!({"uri": "a:1"}));
                peer.answers(&subscribe, json!({})).await;
                return None;
            }
            let listen = acknowledge(&mut peer).await;
            assert_eq!(listen["params"]["notifications"]["resourceSubscriptions"], json!(["a:1"]));
            Some(listen)
        };
        let (subscribed, first) = tokio::join!(server.subscribe("a:1"), script);
        subscribed.unwrap();

        // One more wish: there is one subscription at a time, and the old one ends when the new one is in effect.
        let script = async {
            let first = first.as_ref()?;
            let listen = acknowledge(&mut peer).await;
            assert_eq!(listen["params"]["notifications"]["toolsListChanged"], true);
            let cancelled = peer.receives("notifications/cancelled").await;
            assert_eq!(cancelled["params"]["requestId"], first["id"]);
            Some(listen)
        };
        let (changes, listen) = tokio::join!(server.changes(), script);
        let mut changes = changes.unwrap();
        tell(&mut peer, "notifications/resources/updated", listen.as_ref(), json!({"uri": "a:1/x"})).await;
        let changed = Event::Changed(Change::Resource("a:1/x".into()));
        assert_eq!(changes.next().await, Some(changed));

        let script = async {
            if revision == SESSION {
                let unsubscribe = peer.receives("resources/unsubscribe").await;
                peer.answers(&unsubscribe, json!({})).await;
            } else {
                let listen = acknowledge(&mut peer).await;
                assert_eq!(listen["params"]["notifications"].get("resourceSubscriptions"), None);
                peer.receives("notifications/cancelled").await;
            }
        };
        let (unsubscribed, ()) = tokio::join!(server.unsubscribe("a:1"), script);
        unsubscribed.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_subscription_ends_with_the_last_resource_that_is_watched() {
    let (server, mut peer) = open(&client(), STATELESS, everything()).await;
    let (subscribed, listen) = tokio::join!(server.subscribe("a:1"), acknowledge(&mut peer));
    subscribed.unwrap();
    server.unsubscribe("a:1").await.unwrap();
    settle().await;
    let cancelled = peer.receives_now().await.expect("the server still holds the stream open");
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], listen["id"]);
    // One that was not acknowledged yet ends too.
    let script = async {
        let opening = peer.receives("subscriptions/listen").await;
        server.unsubscribe("a:2").await.unwrap();
        let cancelled = peer.receives("notifications/cancelled").await;
        assert_eq!(cancelled["params"]["requestId"], opening["id"]);
    };
    let (overtaken, ()) = tokio::join!(server.subscribe("a:2"), script);
    let overtaken = overtaken.unwrap_err().to_string();
    assert_eq!(overtaken, "`a:2` was unsubscribed from before the server had answered");
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_is_not_granted_is_reported() {
    let (server, mut peer) = open(&client(), STATELESS, everything()).await;
    let script = async {
        let listen = peer.receives("subscriptions/listen").await;
        let params = json!({"_meta": {SUBSCRIPTION: listen["id"]}, "notifications": {}});
        peer.notifies("notifications/subscriptions/acknowledged", params).await;
    };
    let (refused, ()) = tokio::join!(server.subscribe("a:1"), script);
    assert_eq!(refused.unwrap_err().to_string(), "the server does not report changes of `a:1`");

    let (server, mut peer) = open(&client(), SESSION, everything()).await;
    let script = async {
        let subscribe = peer.receives("resources/subscribe").await;
        peer.refuses(&subscribe, -32602, "no such resource").await;
    };
    let (refused, ()) = tokio::join!(server.subscribe("a:1"), script);
    assert!(matches!(refused.unwrap_err(), Error::Rpc(error) if error.code.0 == -32602));
}

#[tokio::test(start_paused = true)]
async fn a_server_without_change_notifications_gets_no_subscription() {
    let (server, mut peer) = open(&client(), STATELESS, json!({"tools": {}})).await;
    let _changes = server.changes().await.unwrap();
    settle().await;
    assert_eq!(peer.receives_now().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_the_server_ends_is_opened_again() {
    let (server, mut peer) = open(&client(), STATELESS, everything()).await;
    let (changes, listen) = tokio::join!(server.changes(), acknowledge(&mut peer));
    let mut changes = changes.unwrap();
    peer.answers(&listen, json!({"resultType": "complete", "_meta": {SUBSCRIPTION: listen["id"]}})).await;
    let listen = acknowledge(&mut peer).await;
    // What changed in between was not told of.
    assert_eq!(changes.next().await, Some(Event::Reopened));
    tell(&mut peer, "notifications/tools/list_changed", Some(&listen), json!({})).await;
    assert_eq!(changes.next().await, Some(Event::Changed(Change::Tools)));
}

#[tokio::test(start_paused = true)]
async fn wishes_outlive_a_lost_connection() {
    for revision in BOTH {
        let ((mut first, one), (mut second, two)) = (Peer::new(), Peer::new());
        let mut lines = vec![two, one];
        let transport =
            Reconnect::connect(move || std::future::ready(Ok(lines.pop().unwrap()))).await.unwrap();
        let client = client();
        let opening = accept(&mut first, revision, everything());
        let (server, ()) = tokio::join!(client.connect(transport), opening);
        let server = server.unwrap();
        let script = async {
            if revision == STATELESS {
                acknowledge(&mut first).await;
                return;
            }
            let subscribe = first.receives("resources/subscribe").await;
            first.answers(&subscribe, json!({})).await;
        };
        let (subscribed, ()) = tokio::join!(server.subscribe("a:1"), script);
        subscribed.unwrap();
        drop(first);
        if revision == STATELESS {
            let listen = acknowledge(&mut second).await;
            assert_eq!(listen["params"]["notifications"]["resourceSubscriptions"], json!(["a:1"]));
        } else {
            let hello = second.receives("initialize").await;
            second.answers(&hello, json!({"protocolVersion": revision, "capabilities": everything()})).await;
            second.receives("notifications/initialized").await;
            let subscribe = second.receives("resources/subscribe").await;
            assert_eq!(subscribe["params"]["uri"], "a:1");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_callback_for_changes_subscribes_by_itself() {
    for revision in BOTH {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let client = client().on_change({
            let seen = seen.clone();
            move |change| seen.lock().unwrap().push(change.params)
        });
        let (_server, mut peer) = open(&client, revision, everything()).await;
        let listen = if revision == STATELESS { Some(acknowledge(&mut peer).await) } else { None };
        tell(&mut peer, "notifications/tools/list_changed", listen.as_ref(), json!({})).await;
        settle().await;
        assert_eq!(*seen.lock().unwrap(), [Change::Tools]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_fresh_result_is_not_asked_for_again() {
    let (server, mut peer) = open(&client(), STATELESS, everything()).await;
    let page = |ttl: u64| json!({"resultType": "complete", "tools": [{"name": "a", "inputSchema": {}}], "ttlMs": ttl, "cacheScope": "private"});
    let script = async {
        let list = peer.receives("tools/list").await;
        peer.answers(&list, page(1000)).await;
    };
    let (tools, ()) = tokio::join!(server.tools(), script);
    assert_eq!(tools.unwrap().len(), 1);
    assert_eq!(server.tools().await.unwrap().len(), 1);
    assert_eq!(peer.receives_now().await, None);

    // When its time is up and asking again fails, there is nothing to fall back to.
    tokio::time::advance(Duration::from_millis(1000)).await;
    let script = async {
        let list = peer.receives("tools/list").await;
        peer.refuses(&list, -32603, "not now").await;
    };
    let (tools, ()) = tokio::join!(server.tools(), script);
    assert!(matches!(tools.unwrap_err(), Error::Rpc(_)));
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_is_gone_is_gone_though_it_was_read_before() {
    let (server, mut peer) = open(&client(), STATELESS, everything()).await;
    let script = async {
        let read = peer.receives("resources/read").await;
        let contents = json!([{"uri": "a:1", "text": "private"}]);
        let result =
            json!({"resultType": "complete", "contents": contents, "ttlMs": 10, "cacheScope": "private"});
        peer.answers(&read, result).await;
    };
    let (read, ()) = tokio::join!(server.read_resource("a:1"), script);
    assert_eq!(read.unwrap().contents.len(), 1);
    tokio::time::advance(Duration::from_millis(10)).await;
    for code in [-32602, -32603] {
        let script = async {
            let read = peer.receives("resources/read").await;
            peer.refuses(&read, code, "no such resource").await;
        };
        let (read, ()) = tokio::join!(server.read_resource("a:1"), script);
        assert!(matches!(read.unwrap_err(), Error::Rpc(error) if error.code.0 == code));
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_makes_a_result_stale_at_once() {
    let (server, mut peer) = open(&client(), STATELESS, everything()).await;
    let (changes, listen) = tokio::join!(server.changes(), acknowledge(&mut peer));
    let mut changes = changes.unwrap();
    for name in ["old", "new"] {
        let script = async {
            let read = peer.receives("tools/list").await;
            let page = json!({"tools": [{"name": name, "inputSchema": {}}], "ttlMs": 60_000});
            peer.answers(&read, page).await;
        };
        let (tools, ()) = tokio::join!(server.tools(), script);
        assert_eq!(tools.unwrap()[0].name, name);
        tell(&mut peer, "notifications/tools/list_changed", Some(&listen), json!({})).await;
        assert_eq!(changes.next().await, Some(Event::Changed(Change::Tools)));
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_cache_everything_is_asked_for() {
    let (server, mut peer) = open(&client().cache(0, 0), STATELESS, everything()).await;
    for _ in 0..2 {
        let script = async {
            let read = peer.receives("resources/read").await;
            let result = json!({"contents": [{"uri": "a:1", "text": "x"}], "ttlMs": 60_000});
            peer.answers(&read, result).await;
        };
        let (read, ()) = tokio::join!(server.read_resource("a:1"), script);
        assert_eq!(read.unwrap().contents.len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_does_not_look_misses_the_oldest() {
    let (server, mut peer) = open(&client(), SESSION, everything()).await;
    let mut changes = server.changes().await.unwrap();
    for n in 0..300 {
        peer.notifies("notifications/resources/updated", json!({"uri": format!("a:{n}")})).await;
    }
    settle().await;
    assert_eq!(changes.next().await, Some(Event::Missed(44)));
    assert_eq!(changes.next().await, Some(Event::Changed(Change::Resource("a:44".into()))));
    // Nobody else has noticed.
    let script = async {
        let call = peer.receives("tools/call").await;
        peer.answers(&call, text("ok")).await;
    };
    let (result, ()) = tokio::join!(server.call_tool("t", ()), script);
    assert!(result.is_ok());
}

#[tokio::test(start_paused = true)]
async fn the_states_of_a_list_are_fetched_after_each_change() {
    for revision in BOTH {
        let (server, mut peer) = open(&client(), revision, everything()).await;
        let tools = |name: &str| {
            let tool = json!({"name": name, "inputSchema": {"type": "object"}});
            json!({"resultType": "complete", "tools": [tool], "ttlMs": 60000, "cacheScope": "private"})
        };
        let script = async {
            let listen = if revision == STATELESS { Some(acknowledge(&mut peer).await) } else { None };
            for name in ["one", "two"] {
                let list = peer.receives("tools/list").await;
                // A list that fails is fetched again by the next call.
                peer.refuses(&list, -32603, "not now").await;
                let list = peer.receives("tools/list").await;
                peer.answers(&list, tools(name)).await;
                settle().await;
                tell(&mut peer, "notifications/prompts/list_changed", listen.as_ref(), json!({})).await;
                settle().await;
                assert_eq!(peer.receives_now().await, None);
                if name == "one" {
                    tell(&mut peer, "notifications/tools/list_changed", listen.as_ref(), json!({})).await;
                }
            }
        };
        let watch = async {
            let mut states = server.watch_tools().await.unwrap();
            for name in ["one", "two"] {
                assert!(matches!(states.next().await, Err(Error::Rpc(_))));
                assert_eq!(states.next().await.unwrap().unwrap()[0].name, name);
            }
            server.close().await;
            assert!(states.next().await.unwrap().is_none());
        };
        tokio::join!(watch, script);
    }
}

#[tokio::test(start_paused = true)]
async fn notifications_of_extensions_are_subscribed_to() {
    let (server, mut peer) = open(&client(), STATELESS, json!({})).await;
    let (subscribed, listen) =
        tokio::join!(server.subscribe_extension("taskIds", json!(["t-1"])), acknowledge(&mut peer));
    subscribed.unwrap();
    assert_eq!(listen["params"]["notifications"], json!({"taskIds": ["t-1"]}));
    // The server offers no changes of lists, so there is nothing else to listen to.
    let mut changes = server.changes().await.unwrap();
    assert_eq!(peer.receives_now().await, None);
    tell(&mut peer, "notifications/tasks", Some(&listen), json!({"taskId": "t-1"})).await;
    let Some(Event::Notification(notification)) = changes.next().await else { panic!("a notification") };
    assert_eq!(notification.method, "notifications/tasks");

    let error = server.subscribe_extension("toolsListChanged", true).await.unwrap_err();
    assert!(matches!(error, Error::Misuse(_)), "{error}");
    // It stays part of the filter, and what the server does not grant is an error.
    let (refused, ()) = tokio::join!(server.subscribe_extension("other", true), async {
        let listen = peer.receives("subscriptions/listen").await;
        assert_eq!(listen["params"]["notifications"], json!({"taskIds": ["t-1"], "other": true}));
        let granted = json!({"taskIds": ["t-1"]});
        let params = json!({"_meta": {SUBSCRIPTION: listen["id"]}, "notifications": granted});
        peer.notifies("notifications/subscriptions/acknowledged", params).await;
    });
    let error = refused.unwrap_err();
    assert!(matches!(&error, Error::Refused(reason) if reason.contains("`other`")), "{error}");

    // In a session they come without a subscription.
    let (server, mut peer) = open(&client(), SESSION, json!({})).await;
    server.subscribe_extension("taskIds", json!(["t-1"])).await.unwrap();
    settle().await;
    assert_eq!(peer.receives_now().await, None);
}

#[tokio::test(start_paused = true)]
async fn what_is_listened_to_already_is_not_requested_again() {
    let capabilities = json!({"tools": {"listChanged": true}, "resources": {"subscribe": true}});
    let (server, mut peer) = open(&client(), STATELESS, capabilities).await;
    let (changes, _) = tokio::join!(server.changes(), acknowledge(&mut peer));
    let _changes = changes.unwrap();
    let (subscribed, listen) = tokio::join!(server.subscribe("note://1"), acknowledge(&mut peer));
    subscribed.unwrap();
    assert_eq!(listen["params"]["notifications"]["resourceSubscriptions"], json!(["note://1"]));
    peer.receives("notifications/cancelled").await;
    // Nothing is new.
    server.subscribe("note://1").await.unwrap();
    let _more = server.changes().await.unwrap();
    assert_eq!(peer.receives_now().await, None);
    // Those that come while a request is open wait for it.
    let both = async { tokio::join!(server.subscribe("note://2"), server.subscribe("note://2")) };
    let ((first, second), _) = tokio::join!(both, acknowledge(&mut peer));
    first.unwrap();
    second.unwrap();
    peer.receives("notifications/cancelled").await;
    assert_eq!(peer.receives_now().await, None);
    // What was refused is requested again.
    for _ in 0..2 {
        let refuse = async {
            let listen = peer.receives("subscriptions/listen").await;
            let granted = json!({"resourceSubscriptions": ["note://1", "note://2"]});
            let params = json!({"_meta": {SUBSCRIPTION: listen["id"]}, "notifications": granted});
            peer.notifies("notifications/subscriptions/acknowledged", params).await;
            peer.receives("notifications/cancelled").await;
        };
        let (subscribed, ()) = tokio::join!(server.subscribe("note://3"), refuse);
        assert!(matches!(subscribed, Err(Error::Refused(_))));
    }
}

#[tokio::test(start_paused = true)]
async fn a_wish_that_is_refused_leaves_the_earlier_one() {
    let (server, mut peer) = open(&client(), STATELESS, everything()).await;
    let subscribe = async {
        server.subscribe("note://1").await.unwrap();
        server.subscribe_extension("jobs", json!(["j-1"])).await.unwrap();
        let refused = server.subscribe_extension("jobs", json!(["j-1", "j-2"])).await.unwrap_err();
        assert!(refused.to_string().contains("too many jobs"), "{refused}");
        server.subscribe("note://2").await.unwrap();
    };
    let script = async {
        acknowledge(&mut peer).await;
        acknowledge(&mut peer).await;
        peer.receives("notifications/cancelled").await;
        let greedy = peer.receives("subscriptions/listen").await;
        peer.sends(json!({"jsonrpc": "2.0", "id": greedy["id"], "error": {"code": -32602, "message": "too many jobs"}})).await;
        acknowledge(&mut peer).await["params"]["notifications"].clone()
    };
    let ((), last) = tokio::join!(subscribe, script);
    assert_eq!(last["jobs"], json!(["j-1"]), "{last}");
    assert_eq!(last["resourceSubscriptions"], json!(["note://1", "note://2"]));
}

/// Answers reads with the user of their metadata, and lets them be kept.
async fn tell_users(peer: &mut Peer, reads: usize) {
    for _ in 0..reads {
        let read = peer.receives("resources/read").await;
        let user = read["params"]["_meta"]["example.com/user"].as_str().unwrap_or("nobody").to_owned();
        let contents = json!([{"uri": "note://1", "text": user}]);
        let result =
            json!({"resultType": "complete", "contents": contents, "ttlMs": 60_000, "cacheScope": "private"});
        peer.sends(json!({"jsonrpc": "2.0", "id": read["id"], "result": result})).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_read_with_other_metadata_is_not_served_from_the_cache() {
    let (server, mut peer) = open(&client(), STATELESS, everything()).await;
    let read = async {
        let mut texts = Vec::new();
        for (key, value) in [
            ("example.com/user", "ada"),
            ("example.com/user", "bob"),
            ("example.com/user", "ada"),
            // A trace is another one with every request, and is for no cache to know.
            ("traceparent", "00-1"),
            ("traceparent", "00-2"),
        ] {
            let mut meta = pintle::types::Meta::new();
            meta.insert(key, value);
            let result = server.read_resource("note://1").meta(meta).await.unwrap();
            texts.push(result.contents[0].as_text().unwrap().to_owned());
        }
        texts
    };
    let script = tell_users(&mut peer, 3);
    let both = async { tokio::join!(read, script) };
    let (texts, ()) = tokio::time::timeout(Duration::from_secs(60), both).await.expect("three requests");
    assert_eq!(texts, ["ada", "bob", "ada", "nobody", "nobody"]);
}
