//! Checks a [`NonceStore`] that you wrote.
//!
//! ```
//! use std::sync::Arc;
//! use pintle::server::{MemoryNonceStore, nonce_kit};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let checked = nonce_kit::check(|| async {
//!     let nonces = Arc::new(MemoryNonceStore::new());
//!     Ok((nonces.clone(), nonces))
//! });
//! if let Err(broken) = checked.await {
//!     panic!("{broken:#?}");
//! }
//! # }
//! ```

use std::{future::Future, io, sync::Arc};

use tokio::task::JoinSet;

use super::NonceStore;
use crate::{
    properties::{Property, PropertyResult, check as check_properties},
    server::{clock::now, random},
    transport::kit::Broken,
};

/// Checks every property, on two handles of one store that `open` returns. They may be those of an earlier call.
///
/// # Errors
///
/// All properties that do not hold.
pub async fn check<S, F>(open: impl Fn() -> F) -> Result<(), Vec<Broken>>
where
    S: NonceStore,
    F: Future<Output = io::Result<(S, S)>>,
{
    let open =
        async || open().await.map(|(a, b)| (Arc::new(a) as AnyNonceStore, Arc::new(b) as AnyNonceStore));
    check_properties(&PROPERTIES, open).await
}

type AnyNonceStore = Arc<dyn NonceStore>;
type NonceHandles = (AnyNonceStore, AnyNonceStore);

const PROPERTIES: [Property<NonceHandles>; 4] = [
    ("a value is used once, whichever handle is asked", |stores| Box::pin(once(stores))),
    ("of many concurrent uses one is the first", |stores| Box::pin(crowd(stores))),
    ("values do not affect each other", |stores| Box::pin(apart(stores))),
    ("a value that expires at once is still used once", |stores| Box::pin(expiring(stores))),
];

fn fresh() -> Result<[u8; 32], String> {
    random::bytes().map_err(|_| "the system has no random numbers".to_owned())
}

fn later() -> u64 {
    now() / 1000 + 300
}

async fn first_use(store: &AnyNonceStore, nonce: &[u8; 32], expires: u64) -> Result<bool, String> {
    store.first_use(nonce, expires).await.map_err(|error| format!("the store returned an error: {error}"))
}

fn require(holds: bool, otherwise: &str) -> PropertyResult {
    if holds { Ok(()) } else { Err(otherwise.to_owned()) }
}

async fn once((a, b): NonceHandles) -> PropertyResult {
    let nonce = fresh()?;
    require(first_use(&a, &nonce, later()).await?, "a new value was taken for a used one")?;
    for store in [&b, &a, &b] {
        require(!first_use(store, &nonce, later()).await?, "a value was used twice")?;
    }
    Ok(())
}

async fn crowd((a, b): NonceHandles) -> PropertyResult {
    let nonce = fresh()?;
    let mut uses = JoinSet::new();
    for user in 0..64 {
        let store = if user % 2 == 0 { a.clone() } else { b.clone() };
        uses.spawn(async move { first_use(&store, &nonce, later()).await });
    }
    let first = uses.join_all().await.into_iter().filter(|first| *first == Ok(true)).count();
    require(first == 1, &format!("{first} of 64 uses were the first"))
}

async fn apart((a, b): NonceHandles) -> PropertyResult {
    let mut nonce = fresh()?;
    for _ in 0..4 {
        nonce[31] = nonce[31].wrapping_add(1);
        require(first_use(&a, &nonce, later()).await?, "another value was taken for it")?;
        require(!first_use(&b, &nonce, later()).await?, "a value was used twice")?;
    }
    Ok(())
}

/// The clock of another process may be behind: it still accepts the value.
async fn expiring((a, b): NonceHandles) -> PropertyResult {
    let nonce = fresh()?;
    let expires = now() / 1000;
    require(first_use(&a, &nonce, expires).await?, "a new value was taken for a used one")?;
    require(!first_use(&b, &nonce, expires).await?, "a value was forgotten at its expiry")
}
