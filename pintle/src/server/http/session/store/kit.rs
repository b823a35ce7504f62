//! Checks a store of sessions that you wrote.
//!
//! ```
//! use pintle::server::http::store::{MemorySessions, kit};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! if let Err(broken) = kit::check(|| async { Ok(MemorySessions::new()) }).await {
//!     panic!("{broken:#?}");
//! }
//! # }
//! ```

use std::{future::Future, io, sync::Arc, time::Duration};

use pintle_proto::{Revision, server::SessionRecord};

use super::{Sessions, StoredSession};
use crate::{
    properties::{Property, PropertyResult, check as check_properties},
    transport::kit::Broken,
};

/// Checks every property on a store that `open` gives.
///
/// It may give the same one each time: every property has sessions of its own. It takes a second, and ten for each
/// property that hangs; run it under real time.
///
/// # Errors
///
/// All properties that do not hold.
pub async fn check<S, F>(open: impl Fn() -> F) -> Result<(), Vec<Broken>>
where
    S: Sessions,
    F: Future<Output = io::Result<S>>,
{
    check_properties(&PROPERTIES, async || open().await.map(|store| Arc::new(store) as Store)).await
}

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(400);

type Store = Arc<dyn Sessions>;

const PROPERTIES: [Property<Store>; 6] = [
    ("a session comes back as it was written", |store| Box::pin(comes_back(store))),
    ("the last one that was written counts", |store| Box::pin(overwritten(store))),
    ("a session that was removed is gone, once", |store| Box::pin(removed(store))),
    ("sessions do not see each other", |store| Box::pin(apart(store))),
    ("an idle session goes and one in use stays", |store| Box::pin(idle(store))),
    ("looking for a session is not using it", |store| Box::pin(looked_for(store))),
];

/// A session with something in every field that a store might lose.
fn session(principal: Option<&str>, level: &str) -> Result<StoredSession, String> {
    let revision = Revision::all().next_back().map(Revision::as_str).unwrap_or_default();
    let record: SessionRecord = serde_json::from_value(serde_json::json!({
        "revision": revision,
        "client": { "name": "kit \u{4e16}", "version": "1" },
        "capabilities": { "sampling": {}, "experimental": { "x": { "deep": [1, null, "\n"] } } },
        "logLevel": level,
        "watched": ["note://1", "note://\u{e4}"],
    }))
    .map_err(|error| error.to_string())?;
    Ok(StoredSession::new(principal, record).at_server("kit \u{4e16} server"))
}

async fn put(store: &Store, id: &str, session: &StoredSession, idle: Duration) -> PropertyResult {
    store.put(id, session.clone(), idle).await.map_err(|error| format!("`put` failed: {error}"))
}

async fn expect(store: &Store, id: &str, session: Option<&StoredSession>, idle: Duration) -> PropertyResult {
    let found = store.get(id, idle).await.map_err(|error| format!("`get` failed: {error}"))?;
    if found.as_ref() == session { Ok(()) } else { Err(format!("expected {session:?}, found {found:?}")) }
}

async fn comes_back(store: Store) -> PropertyResult {
    for (id, principal) in [("kit-back-1", None), ("kit-back-2", Some("ann")), ("kit-back-3", Some(""))] {
        let session = session(principal, "debug")?;
        expect(&store, id, None, LONG).await?;
        put(&store, id, &session, LONG).await?;
        expect(&store, id, Some(&session), LONG).await?;
        expect(&store, id, Some(&session), LONG).await?;
    }
    Ok(())
}

async fn overwritten(store: Store) -> PropertyResult {
    put(&store, "kit-over", &session(None, "debug")?, LONG).await?;
    let last = session(None, "error")?;
    put(&store, "kit-over", &last, LONG).await?;
    expect(&store, "kit-over", Some(&last), LONG).await
}

async fn removed(store: Store) -> PropertyResult {
    put(&store, "kit-gone", &session(None, "debug")?, LONG).await?;
    for there in [true, false] {
        let removed = store.remove("kit-gone").await.map_err(|error| format!("`remove` failed: {error}"))?;
        if removed != there {
            return Err(format!("`remove` says {removed}, expected {there}"));
        }
        expect(&store, "kit-gone", None, LONG).await?;
    }
    Ok(())
}

async fn apart(store: Store) -> PropertyResult {
    let (ann, bob) = (session(Some("ann"), "debug")?, session(Some("bob"), "debug")?);
    put(&store, "kit-apart", &ann, LONG).await?;
    put(&store, "kit-apart-2", &bob, LONG).await?;
    store.remove("kit-apart").await.map_err(|error| format!("`remove` failed: {error}"))?;
    expect(&store, "kit-apart-2", Some(&bob), LONG).await
}

async fn idle(store: Store) -> PropertyResult {
    let session = session(None, "debug")?;
    put(&store, "kit-idle", &session, SHORT).await?;
    put(&store, "kit-used", &session, SHORT).await?;
    for _ in 0..4 {
        tokio::time::sleep(SHORT / 3).await;
        expect(&store, "kit-used", Some(&session), SHORT).await?;
    }
    expect(&store, "kit-idle", None, SHORT).await
}

async fn looked_for(store: Store) -> PropertyResult {
    let session = session(None, "debug")?;
    put(&store, "kit-looked", &session, SHORT).await?;
    for round in 0..6 {
        let found =
            store.contains("kit-looked").await.map_err(|error| format!("`contains` failed: {error}"))?;
        if round == 0 && !found {
            return Err("`contains` does not find what was written just now".into());
        }
        tokio::time::sleep(SHORT / 3).await;
    }
    expect(&store, "kit-looked", None, SHORT).await
}
