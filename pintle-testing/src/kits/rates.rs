//! Checks a [`RateStore`] that you wrote.
//!
//! ```
//! use pintle::server::MemoryRateStore;
//! use pintle_testing::kits;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let open = async || Ok(kits::two_handles(MemoryRateStore::new()));
//! if let Err(broken) = kits::rates::check(open).await {
//!     panic!("{broken:#?}");
//! }
//! # }
//! ```

use std::{io, sync::Arc, time::Duration};

use pintle::server::{RateLease, RateRequest, RateStore};

use super::harness::{Broken, Check, Checked, Handles, at_once, fresh as fresh_bytes, require, wrong};

/// Checks every property, on two handles of one store that `open` returns. They may be those of an earlier call.
///
/// # Errors
///
/// All properties that do not hold.
pub async fn check<S: RateStore>(open: impl AsyncFn() -> io::Result<[S; 2]>) -> Result<(), Vec<Broken>> {
    let mut check = Check::new(async || {
        let [one, other] = open().await?;
        Ok(Handles { one: Arc::new(one) as Arc<dyn RateStore>, other: Arc::new(other) })
    });
    check.that("a bucket has its calls once, whichever handle is asked", shared).await;
    check.that("of many concurrent requests as many are granted as there are calls", crowd).await;
    check.that("what was spent is taken in any case", spent).await;
    check.that("buckets do not affect each other", apart).await;
    check.that("a bucket is filled again", filled).await;
    check.end()
}

type RateHandles = Handles<dyn RateStore>;

/// So long that nothing is filled while a check runs.
const LONG: Duration = Duration::from_secs(1_000_000);

fn fresh(calls: u32, wanted: u32) -> RateRequest {
    let bucket: String = fresh_bytes::<8>().iter().map(|byte| format!("{byte:02x}:")).collect();
    let mut request = RateRequest::new(bucket, calls, LONG);
    request.wanted = wanted;
    request
}

async fn take(store: &Arc<dyn RateStore>, request: &RateRequest) -> Checked<RateLease> {
    Ok(store.take(request).await?)
}

async fn shared(Handles { one: a, other: b }: RateHandles) -> Checked {
    let request = fresh(10, 4);
    let mut granted = Vec::new();
    for store in [&a, &b, &a, &b] {
        granted.push(take(store, &request).await?);
    }
    let calls: Vec<u32> = granted.iter().map(|lease| lease.calls).collect();
    require(calls == [4, 4, 2, 0], &format!("{calls:?} were granted of 10, 4 at a time"))?;
    let waits = granted.last().is_some_and(|lease| lease.wait > LONG / 20 && lease.wait <= LONG / 10);
    require(waits, "the time until the next call is wrong")
}

async fn crowd(stores: RateHandles) -> Checked {
    let request = fresh(20, 1);
    let takes = (0..64).map(|user| {
        let (store, request) = (stores.of_turn(user), request.clone());
        async move { take(&store, &request).await.map_or(0, |lease| lease.calls) }
    });
    let granted: u32 = at_once(takes).await?.into_iter().sum();
    require(granted == 20, &format!("{granted} of 20 were granted"))
}

async fn spent(Handles { one: a, other: b }: RateHandles) -> Checked {
    let mut request = fresh(10, 5);
    request.spent = 7;
    let lease = take(&a, &request).await?;
    require(lease.calls == 3, "what was spent is not counted")?;
    request.spent = 1_000;
    require(take(&b, &request).await?.calls == 0, "an empty bucket grants calls")?;
    request.spent = 0;
    let lease = take(&a, &request).await?;
    require(lease.calls == 0 && lease.wait <= LONG + LONG / 5, "a debt is not bounded by the capacity")
}

async fn apart(Handles { one: a, other: b }: RateHandles) -> Checked {
    let (mut one, mut other) = (fresh(1, 1), fresh(1, 1));
    other.bucket = format!("{}x", one.bucket);
    require(take(&a, &one).await?.calls == 1, "a new bucket is empty")?;
    require(take(&b, &other).await?.calls == 1, "another bucket was taken for it")?;
    (one.wanted, other.wanted) = (0, 0);
    require(take(&b, &one).await?.calls == 0, "more was granted than wanted")
}

async fn filled(Handles { one: a, other: b }: RateHandles) -> Checked {
    // A call each microsecond: it is there by the time that anybody asks.
    let mut request = fresh(1_000, 1_000);
    request.window = Duration::from_millis(1);
    let mut granted = 0;
    for _ in 0..1_000 {
        granted += take(&a, &request).await?.calls;
        granted += take(&b, &request).await?.calls;
        if granted > 1_000 {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    wrong("nothing was added to an empty bucket")
}
