//! What a client need not ask again, and what it must.

use pintle_proto::{
    client::{self, Cache, Extras, Mode},
    server::Change,
};
use serde_json::{Value, json};

use super::{
    ALL, R4, R5, SESSIONS,
    client::{Client, Failure, object},
    engines::Pair,
    server::Server,
};

const TTL_MS: u64 = 1_000;

/// A pair whose client looks into its cache first.
struct Caching {
    pair: Pair,
    cache: Cache,
}

impl Caching {
    fn new(revisions: &[&str]) -> Self {
        let mut pair = Pair::new(Client::new(Mode::Auto, ALL), Server::new(revisions));
        pair.open().unwrap();
        pair.server.shop.ttl_ms.set(TTL_MS);
        Self { pair, cache: Cache::new(100, 1 << 20) }
    }

    fn get(
        &mut self,
        method: &'static str,
        params: &Value,
        principal: &'static str,
    ) -> Result<Value, Failure> {
        let raw = object(params);
        if let Some(result) = self.cache.fresh(method, &raw, principal, self.pair.now) {
            return Ok(result.decode().unwrap());
        }
        self.pair.principal = Some(principal);
        let ticket = self.cache.ticket();
        let result = self.pair.call(method, params.clone())?;
        let last = self.pair.client().last();
        let first = self.pair.client().rounds(last) == 0;
        if first {
            self.cache.store(method, &raw, principal, ticket, &object(&result), self.pair.now);
        }
        Ok(result)
    }

    /// How often the server was asked, when this was.
    fn asked(&mut self, method: &'static str, params: &Value, principal: &'static str) -> u32 {
        let before = self.pair.server.shop.listings.get();
        self.get(method, params, principal).unwrap();
        self.pair.server.shop.listings.get() - before
    }

    fn changed(&mut self, change: &Change) {
        self.pair.client().received();
        self.pair.server.changed(change);
        self.pair.drive();
        for line in self.pair.client().received() {
            let change = match line.split_once(' ').unwrap() {
                ("changed", "Tools") => client::Change::Tools,
                ("changed", "Resources") => client::Change::Resources,
                ("updated", uri) => client::Change::Resource(uri.into()),
                other => panic!("{other:?}"),
            };
            self.cache.forget(&change);
        }
    }

    fn listen(&mut self) {
        let wanted = json!({"notifications": {
            "toolsListChanged": true, "resourcesListChanged": true, "resourceSubscriptions": ["note://1"],
        }});
        self.pair.client().start("subscriptions/listen", wanted, &Extras::default()).unwrap();
        self.pair.drive();
    }
}

#[test]
fn a_list_is_good_for_as_long_as_the_server_says() {
    let mut pair = Caching::new(&[R5]);
    let none = json!({});
    assert_eq!(pair.asked("tools/list", &none, "ann"), 1);
    assert_eq!(pair.asked("tools/list", &none, "ann"), 0);
    pair.pair.advance(TTL_MS - 1);
    assert_eq!(pair.asked("tools/list", &none, "ann"), 0);
    pair.pair.advance(1);
    assert_eq!(pair.asked("tools/list", &none, "ann"), 1, "its time has come");
    assert_eq!(pair.asked("tools/list", &none, "ann"), 0, "and begins anew");
    // What a request says of itself does not make it another.
    let meta = json!({"_meta": {"acme/reason": 5}});
    assert_eq!(pair.asked("tools/list", &meta, "ann"), 0);
}

#[test]
fn a_result_without_a_time_is_not_kept() {
    // A session has no words for it.
    for (revisions, ttl) in [(&[R5][..], 0), (&[R4], TTL_MS), (SESSIONS, TTL_MS)] {
        let mut pair = Caching::new(revisions);
        pair.pair.server.shop.ttl_ms.set(ttl);
        assert_eq!(pair.asked("tools/list", &json!({}), "ann"), 1);
        assert_eq!(pair.asked("tools/list", &json!({}), "ann"), 1);
    }
}

#[test]
fn pages_are_kept_one_by_one() {
    let mut pair = Caching::new(&[R5]);
    let pages = [json!({}), json!({"cursor": ""}), json!({"cursor": "3"})];
    for page in &pages {
        assert_eq!(pair.asked("resources/list", page, "ann"), 1);
    }
    for page in &pages {
        assert_eq!(pair.asked("resources/list", page, "ann"), 0);
    }
    let uris: Vec<_> = pages
        .iter()
        .map(|page| pair.get("resources/list", page, "ann").unwrap()["resources"][0]["uri"].clone())
        .collect();
    assert_eq!(uris, ["note://1", "note://2", "note://3"]);
}

#[test]
fn a_change_makes_the_client_ask_again() {
    let mut pair = Caching::new(&[R5]);
    pair.listen();
    let (none, one) = (json!({}), json!({"uri": "note://1"}));
    let kept = [("tools/list", &none), ("resources/list", &none), ("resources/read", &one)];
    for (change, stale) in [
        (Change::Tools, "tools/list"),
        (Change::Resources, "resources/list"),
        (Change::Resource("note://1".into()), "resources/read"),
        (Change::Prompts, "nothing"),
        (Change::Resource("note://2".into()), "nothing"),
    ] {
        for (method, params) in kept {
            pair.get(method, params, "ann").unwrap();
            assert_eq!(pair.asked(method, params, "ann"), 0);
        }
        pair.changed(&change);
        for (method, params) in kept {
            assert_eq!(pair.asked(method, params, "ann"), u32::from(method == stale), "{change:?}: {method}");
        }
    }
}

#[test]
fn a_list_that_was_on_its_way_when_it_changed_is_not_kept() {
    let mut pair = Caching::new(&[R5]);
    pair.listen();
    let ticket = pair.cache.ticket();
    let result = pair.pair.call("tools/list", json!({})).unwrap();
    pair.changed(&Change::Tools);
    let now = pair.pair.now;
    pair.cache.store("tools/list", &object(&json!({})), "ann", ticket, &object(&result), now);
    assert_eq!(pair.asked("tools/list", &json!({}), "ann"), 1);
}

#[test]
fn an_error_is_not_kept_and_brings_nothing_old_back() {
    let mut pair = Caching::new(&[R5]);
    let none = json!({});
    pair.get("tools/list", &none, "ann").unwrap();
    pair.pair.server.shop.broken.set(true);
    assert_eq!(pair.asked("tools/list", &none, "ann"), 0, "still good");
    pair.pair.advance(TTL_MS);
    assert_eq!(pair.get("tools/list", &none, "ann").unwrap_err().code(), -32603);
    assert_eq!(pair.get("tools/list", &none, "ann").unwrap_err().code(), -32603);
    pair.pair.server.shop.broken.set(false);
    assert_eq!(pair.asked("tools/list", &none, "ann"), 1);
    assert_eq!(pair.asked("tools/list", &none, "ann"), 0);
}

#[test]
fn what_is_private_is_not_shared() {
    let mut pair = Caching::new(&[R5]);
    let none = json!({});
    assert_eq!(pair.asked("tools/list", &none, "ann"), 1);
    assert_eq!(pair.asked("tools/list", &none, "bob"), 1);
    assert_eq!(pair.asked("tools/list", &none, "ann"), 0);
    assert_eq!(pair.asked("tools/list", &none, "bob"), 0);
    pair.pair.server.shop.public.set(true);
    pair.pair.advance(TTL_MS);
    assert_eq!(pair.asked("tools/list", &none, "ann"), 1);
    assert_eq!(pair.asked("tools/list", &none, "bob"), 0, "it is everybody's now");
}

#[test]
fn what_took_a_question_is_not_kept() {
    let mut pair = Caching::new(&[R5]);
    let ask = json!({"uri": "note://ask"});
    let reply = pair.get("resources/read", &ask, "ann").unwrap();
    assert_eq!(reply["contents"][0]["text"], "Is it one? Yes.");
    assert_eq!(pair.asked("resources/read", &ask, "ann"), 1);
}
