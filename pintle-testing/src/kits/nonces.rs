//! Checks a [`NonceStore`] that you wrote.
//!
//! ```
//! use pintle::server::MemoryNonceStore;
//! use pintle_testing::kits;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let open = async || Ok(kits::two_handles(MemoryNonceStore::new()));
//! if let Err(broken) = kits::nonces::check(open).await {
//!     panic!("{broken:#?}");
//! }
//! # }
//! ```

use std::{io, sync::Arc};

use pintle::server::NonceStore;

use super::harness::{Broken, Check, Checked, Handles, at_once, fresh, now, require};

/// Checks every property, on two handles of one store that `open` returns. They may be those of an earlier call.
///
/// # Errors
///
/// All properties that do not hold.
pub async fn check<S: NonceStore>(open: impl AsyncFn() -> io::Result<[S; 2]>) -> Result<(), Vec<Broken>> {
    let mut check = Check::new(async || {
        let [one, other] = open().await?;
        Ok(Handles { one: Arc::new(one) as Arc<dyn NonceStore>, other: Arc::new(other) })
    });
    check.that("a value is used once, whichever handle is asked", once).await;
    check.that("of many concurrent uses one is the first", crowd).await;
    check.that("values do not affect each other", apart).await;
    check.that("a value that expires at once is still used once", expiring).await;
    check.end()
}

type NonceHandles = Handles<dyn NonceStore>;

fn later() -> u64 {
    now() / 1000 + 300
}

async fn first_use(store: &Arc<dyn NonceStore>, nonce: &[u8; 32], expires: u64) -> Checked<bool> {
    Ok(store.first_use(nonce, expires).await?)
}

async fn once(Handles { one: a, other: b }: NonceHandles) -> Checked {
    let nonce = fresh();
    require(first_use(&a, &nonce, later()).await?, "a new value was taken for a used one")?;
    for store in [&b, &a, &b] {
        require(!first_use(store, &nonce, later()).await?, "a value was used twice")?;
    }
    Ok(())
}

async fn crowd(stores: NonceHandles) -> Checked {
    let nonce = fresh();
    let uses = (0..64).map(|user| {
        let store = stores.of_turn(user);
        async move { first_use(&store, &nonce, later()).await }
    });
    let first = at_once(uses).await?.into_iter().filter(|first| matches!(first, Ok(true))).count();
    require(first == 1, &format!("{first} of 64 uses were the first"))
}

async fn apart(Handles { one: a, other: b }: NonceHandles) -> Checked {
    let mut nonce = fresh();
    for _ in 0..4 {
        nonce[31] = nonce[31].wrapping_add(1);
        require(first_use(&a, &nonce, later()).await?, "another value was taken for it")?;
        require(!first_use(&b, &nonce, later()).await?, "a value was used twice")?;
    }
    Ok(())
}

/// The clock of another process may be behind: it still accepts the value.
async fn expiring(Handles { one: a, other: b }: NonceHandles) -> Checked {
    let nonce = fresh();
    let expires = now() / 1000;
    require(first_use(&a, &nonce, expires).await?, "a new value was taken for a used one")?;
    require(!first_use(&b, &nonce, expires).await?, "a value was forgotten at its expiry")
}
