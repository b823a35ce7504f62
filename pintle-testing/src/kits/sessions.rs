//! Checks a store of sessions that you wrote.
//!
//! ```
//! use pintle::server::http::store::MemorySessions;
//! use pintle_testing::kits;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let open = async || Ok(kits::two_handles(MemorySessions::new()));
//! if let Err(broken) = kits::sessions::check(open).await {
//!     panic!("{broken:#?}");
//! }
//! # }
//! ```

use std::{io, sync::Arc, time::Duration};

use pintle::{
    proto::{Revision, SessionRecord},
    server::http::store::{Renewed, Replaced, Sessions, StoredSession, VersionedSession},
};

use super::harness::{Broken, Check, Checked, Handles, at_once, wrong};

/// Checks every property, with two handles of one store that `open` returns: as two processes have them.
///
/// It may return the same store each time: every property has sessions of its own. It takes some seconds.
///
/// # Errors
///
/// All properties that do not hold.
pub async fn check<S: Sessions>(open: impl AsyncFn() -> io::Result<[S; 2]>) -> Result<(), Vec<Broken>> {
    let mut check = Check::new(async || {
        let [one, other] = open().await?;
        Ok(Handles { one: Arc::new(one) as Arc<dyn Sessions>, other: Arc::new(other) })
    });
    check.that("a session is returned as it was written", comes_back).await;
    check.that("a session is created once", created_twice).await;
    check.that("a session is replaced only if it has the version that was read", replaced).await;
    check.that("of two changes at the same time one is refused", changed_at_once).await;
    check.that("a session that was removed is not restored by a change", changed_after_removal).await;
    check.that("a session that was removed is gone, once", removed).await;
    check.that("sessions are independent of each other", apart).await;
    check.that("an id is a name and not a pattern", hostile_ids).await;
    check.that("an idle session expires and one in use does not", idle).await;
    check.that("a change extends the life of a session", changed_in_time).await;
    check.that("a session is renewed, and returned if it has changed", renewed).await;
    check.that("a session that is renewed does not expire", renewed_in_time).await;
    check.that("looking for a session is not using it", looked_for).await;
    check.end()
}

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(1200);

/// Two handles of one store.
type Store = Handles<dyn Sessions>;

/// A session with something in every field that a store might lose.
fn session(principal: Option<&str>, level: &str) -> Checked<StoredSession> {
    let revision = Revision::all().next_back().map(Revision::as_str).unwrap_or_default();
    let record: SessionRecord = serde_json::from_value(serde_json::json!({
        "revision": revision,
        "client": { "name": "kit \u{4e16}", "version": "1" },
        "capabilities": { "sampling": {}, "experimental": { "x": { "deep": [1, null, "\n"] } } },
        "logLevel": level,
        "watched": ["note://1", "note://\u{e4}"],
    }))?;
    let mut stored = StoredSession::new(principal, record).at_server("kit \u{4e16} server");
    stored.question_key = Some("6b6579".to_owned());
    Ok(stored)
}

async fn create(store: &Arc<dyn Sessions>, id: &str, session: &StoredSession, idle: Duration) -> Checked {
    match store.create(id, session.clone(), idle).await? {
        true => Ok(()),
        false => wrong(format!("`create` found a session `{id}` that nobody has created")),
    }
}

async fn replace(
    store: &Arc<dyn Sessions>,
    id: &str,
    version: u64,
    session: &StoredSession,
    expected: Replaced,
) -> Checked {
    let replaced = store.replace(id, version, session.clone(), LONG).await;
    match replaced? {
        replaced if replaced == expected => Ok(()),
        replaced => wrong(format!("`replace` of version {version} is {replaced:?}, expected {expected:?}")),
    }
}

/// Checks what both handles find.
async fn expect(store: &Store, id: &str, session: Option<(u64, &StoredSession)>, idle: Duration) -> Checked {
    for handle in [&store.one, &store.other] {
        let found = handle.get(id, idle).await?;
        if found.as_ref().map(|found| (found.version, &found.session)) != session {
            return wrong(format!("expected {session:?}, found {found:?}"));
        }
    }
    Ok(())
}

async fn remove(store: &Arc<dyn Sessions>, id: &str) -> Checked<bool> {
    Ok(store.remove(id).await?)
}

async fn comes_back(store: Store) -> Checked {
    for (id, principal) in [("kit-back-1", None), ("kit-back-2", Some("ann")), ("kit-back-3", Some(""))] {
        let session = session(principal, "debug")?;
        expect(&store, id, None, LONG).await?;
        create(&store.one, id, &session, LONG).await?;
        expect(&store, id, Some((1, &session)), LONG).await?;
        expect(&store, id, Some((1, &session)), LONG).await?;
    }
    Ok(())
}

async fn created_twice(store: Store) -> Checked {
    let (first, second) = (session(None, "debug")?, session(None, "error")?);
    create(&store.one, "kit-twice", &first, LONG).await?;
    for handle in [&store.one, &store.other] {
        match handle.create("kit-twice", second.clone(), LONG).await {
            Ok(false) => {}
            other => return wrong(format!("the second `create` returned {other:?}")),
        }
    }
    expect(&store, "kit-twice", Some((1, &first)), LONG).await
}

async fn replaced(store: Store) -> Checked {
    let (first, second, third) = (session(None, "debug")?, session(None, "info")?, session(None, "error")?);
    create(&store.one, "kit-replaced", &first, LONG).await?;
    replace(&store.other, "kit-replaced", 1, &second, Replaced::Done).await?;
    expect(&store, "kit-replaced", Some((2, &second)), LONG).await?;
    for version in [0, 1, 3, u64::MAX] {
        replace(&store.one, "kit-replaced", version, &third, Replaced::Conflict).await?;
    }
    expect(&store, "kit-replaced", Some((2, &second)), LONG).await?;
    replace(&store.one, "kit-replaced", 2, &third, Replaced::Done).await?;
    expect(&store, "kit-replaced", Some((3, &third)), LONG).await
}

async fn changed_at_once(store: Store) -> Checked {
    create(&store.one, "kit-race", &session(None, "debug")?, LONG).await?;
    let mut version = 1;
    for _ in 0..8 {
        let session = session(Some(&version.to_string()), "info")?;
        let writers = (0..8).map(|writer| {
            let (handle, session) = (store.of_turn(writer), session.clone());
            async move { handle.replace("kit-race", version, session, LONG).await }
        });
        let mut done = 0;
        for replaced in at_once(writers).await? {
            match replaced {
                Ok(Replaced::Done) => done += 1,
                Ok(Replaced::Conflict) => {}
                other => return wrong(format!("`replace` returned {other:?}")),
            }
        }
        if done != 1 {
            return wrong(format!("of 8 changes of one version {done} were made"));
        }
        version += 1;
    }
    let found = store.other.get("kit-race", LONG).await?;
    match found.map(|found| found.version) {
        Some(found) if found == version => Ok(()),
        found => wrong(format!("after {version} versions there is {found:?}")),
    }
}

async fn changed_after_removal(store: Store) -> Checked {
    let session = session(None, "debug")?;
    replace(&store.one, "kit-removed", 1, &session, Replaced::Gone).await?;
    create(&store.one, "kit-removed", &session, LONG).await?;
    remove(&store.other, "kit-removed").await?;
    replace(&store.one, "kit-removed", 1, &session, Replaced::Gone).await?;
    expect(&store, "kit-removed", None, LONG).await
}

async fn removed(store: Store) -> Checked {
    create(&store.one, "kit-gone", &session(None, "debug")?, LONG).await?;
    for (handle, there) in [(&store.other, true), (&store.one, false)] {
        let removed = remove(handle, "kit-gone").await?;
        if removed != there {
            return wrong(format!("`remove` returned {removed}, expected {there}"));
        }
        expect(&store, "kit-gone", None, LONG).await?;
    }
    Ok(())
}

async fn apart(store: Store) -> Checked {
    let (ann, bob) = (session(Some("ann"), "debug")?, session(Some("bob"), "debug")?);
    create(&store.one, "kit-apart", &ann, LONG).await?;
    create(&store.one, "kit-apart-2", &bob, LONG).await?;
    remove(&store.one, "kit-apart").await?;
    expect(&store, "kit-apart-2", Some((1, &bob)), LONG).await
}

async fn hostile_ids(store: Store) -> Checked {
    let ids = ["", "*", "kit-?", "{kit}", "}{", "kit\r\nDEL x", "kit:*", "kit\0", "\u{4e16}"];
    for (n, id) in ids.iter().enumerate() {
        let session = session(Some(&n.to_string()), "debug")?;
        remove(&store.one, id).await?;
        create(&store.one, id, &session, LONG).await?;
    }
    for (n, id) in ids.iter().enumerate() {
        let session = session(Some(&n.to_string()), "debug")?;
        expect(&store, id, Some((1, &session)), LONG).await?;
        remove(&store.other, id).await?;
        expect(&store, id, None, LONG).await?;
    }
    Ok(())
}

async fn idle(store: Store) -> Checked {
    let session = session(None, "debug")?;
    create(&store.one, "kit-idle", &session, SHORT).await?;
    create(&store.one, "kit-used", &session, SHORT).await?;
    for _ in 0..4 {
        tokio::time::sleep(SHORT / 3).await;
        expect(&store, "kit-used", Some((1, &session)), SHORT).await?;
    }
    expect(&store, "kit-idle", None, SHORT).await?;
    replace(&store.one, "kit-idle", 1, &session, Replaced::Gone).await?;
    create(&store.one, "kit-idle", &session, SHORT).await
}

async fn changed_in_time(store: Store) -> Checked {
    let session = session(None, "debug")?;
    create(&store.one, "kit-extended", &session, SHORT).await?;
    replace(&store.one, "kit-extended", 1, &session, Replaced::Done).await?;
    tokio::time::sleep(2 * SHORT).await;
    expect(&store, "kit-extended", Some((2, &session)), LONG).await
}

/// Checks what both handles return for a version that a process knows.
async fn renew(store: &Store, id: &str, version: u64, expected: &Renewed, idle: Duration) -> Checked {
    for handle in [&store.one, &store.other] {
        let renewed = handle.renew(id, version, idle).await;
        let renewed = renewed?;
        if renewed != *expected {
            return wrong(format!("`renew` of version {version} is {renewed:?}, expected {expected:?}"));
        }
    }
    Ok(())
}

async fn renewed(store: Store) -> Checked {
    let (first, second) = (session(Some("ann"), "debug")?, session(Some("ann"), "info")?);
    renew(&store, "kit-renewed", 1, &Renewed::Gone, LONG).await?;
    create(&store.one, "kit-renewed", &first, LONG).await?;
    renew(&store, "kit-renewed", 1, &Renewed::Unchanged, LONG).await?;
    let created = Renewed::Changed(VersionedSession::new(1, first).into());
    for version in [0, 2, 11, u64::MAX] {
        renew(&store, "kit-renewed", version, &created, LONG).await?;
    }
    replace(&store.other, "kit-renewed", 1, &second, Replaced::Done).await?;
    let replaced = Renewed::Changed(VersionedSession::new(2, second).into());
    renew(&store, "kit-renewed", 1, &replaced, LONG).await?;
    renew(&store, "kit-renewed", 2, &Renewed::Unchanged, LONG).await?;
    remove(&store.one, "kit-renewed").await?;
    renew(&store, "kit-renewed", 2, &Renewed::Gone, LONG).await
}

async fn renewed_in_time(store: Store) -> Checked {
    let session = session(None, "debug")?;
    create(&store.one, "kit-renewed-in-time", &session, SHORT).await?;
    for _ in 0..4 {
        tokio::time::sleep(SHORT / 3).await;
        renew(&store, "kit-renewed-in-time", 1, &Renewed::Unchanged, SHORT).await?;
    }
    tokio::time::sleep(2 * SHORT).await;
    renew(&store, "kit-renewed-in-time", 1, &Renewed::Gone, SHORT).await
}

async fn looked_for(store: Store) -> Checked {
    let session = session(None, "debug")?;
    create(&store.one, "kit-looked", &session, SHORT).await?;
    for round in 0..6 {
        let found = store.other.contains("kit-looked").await?;
        if round == 0 && !found {
            return wrong("`contains` does not find what was written just now");
        }
        tokio::time::sleep(SHORT / 3).await;
    }
    expect(&store, "kit-looked", None, SHORT).await
}
