//! Checks a [`RateStore`] that you wrote.
//!
//! ```
//! use std::sync::Arc;
//! use pintle::server::{MemoryRateStore, rate_kit};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let checked = rate_kit::check(|| async {
//!     let rates = Arc::new(MemoryRateStore::new());
//!     Ok((rates.clone(), rates))
//! });
//! if let Err(broken) = checked.await {
//!     panic!("{broken:#?}");
//! }
//! # }
//! ```

use std::{future::Future, io, sync::Arc, time::Duration};

use tokio::task::JoinSet;

use crate::{
    properties::{Property, PropertyResult, check as check_properties},
    server::{RateLease, RateRequest, RateStore, random},
    transport::kit::Broken,
};

/// Checks every property, on two handles of one store that `open` returns. They may be those of an earlier call.
///
/// # Errors
///
/// All properties that do not hold.
pub async fn check<S, F>(open: impl Fn() -> F) -> Result<(), Vec<Broken>>
where
    S: RateStore,
    F: Future<Output = io::Result<(S, S)>>,
{
    let open = async || open().await.map(|(a, b)| (Arc::new(a) as AnyRateStore, Arc::new(b) as AnyRateStore));
    check_properties(&PROPERTIES, open).await
}

type AnyRateStore = Arc<dyn RateStore>;
type RateHandles = (AnyRateStore, AnyRateStore);

const PROPERTIES: [Property<RateHandles>; 5] = [
    ("a bucket has its calls once, whichever handle is asked", |stores| Box::pin(shared(stores))),
    ("of many concurrent requests as many are granted as there are calls", |stores| Box::pin(crowd(stores))),
    ("what was spent is taken in any case", |stores| Box::pin(spent(stores))),
    ("buckets do not affect each other", |stores| Box::pin(apart(stores))),
    ("a bucket is filled again", |stores| Box::pin(filled(stores))),
];

/// So long that nothing is filled while a check runs.
const LONG: Duration = Duration::from_secs(1_000_000);

fn fresh(calls: u32, wanted: u32) -> Result<RateRequest, String> {
    let bytes: [u8; 8] = random::bytes().map_err(|_| "the system has no random numbers".to_owned())?;
    let bucket: String = bytes.iter().map(|byte| format!("{byte:02x}:")).collect();
    Ok(RateRequest { wanted, ..RateRequest::new(bucket, calls, LONG) })
}

async fn take(store: &AnyRateStore, request: &RateRequest) -> Result<RateLease, String> {
    store.take(request).await.map_err(|error| format!("the store returned an error: {error}"))
}

fn require(holds: bool, otherwise: &str) -> PropertyResult {
    if holds { Ok(()) } else { Err(otherwise.to_owned()) }
}

async fn shared((a, b): RateHandles) -> PropertyResult {
    let request = fresh(10, 4)?;
    let mut granted = Vec::new();
    for store in [&a, &b, &a, &b] {
        granted.push(take(store, &request).await?);
    }
    let calls: Vec<u32> = granted.iter().map(|lease| lease.calls).collect();
    require(calls == [4, 4, 2, 0], &format!("{calls:?} were granted of 10, 4 at a time"))?;
    let waits = granted.last().is_some_and(|lease| lease.wait > LONG / 20 && lease.wait <= LONG / 10);
    require(waits, "the time until the next call is wrong")
}

async fn crowd((a, b): RateHandles) -> PropertyResult {
    let request = fresh(20, 1)?;
    let mut takes = JoinSet::new();
    for user in 0..64 {
        let (store, request) = (if user % 2 == 0 { a.clone() } else { b.clone() }, request.clone());
        takes.spawn(async move { take(&store, &request).await.map_or(0, |lease| lease.calls) });
    }
    let granted: u32 = takes.join_all().await.into_iter().sum();
    require(granted == 20, &format!("{granted} of 20 were granted"))
}

async fn spent((a, b): RateHandles) -> PropertyResult {
    let mut request = fresh(10, 5)?;
    request.spent = 7;
    let lease = take(&a, &request).await?;
    require(lease.calls == 3, "what was spent is not counted")?;
    request.spent = 1_000;
    require(take(&b, &request).await?.calls == 0, "an empty bucket grants calls")?;
    request.spent = 0;
    let lease = take(&a, &request).await?;
    require(lease.calls == 0 && lease.wait <= LONG + LONG / 5, "a debt is not bounded by the capacity")
}

async fn apart((a, b): RateHandles) -> PropertyResult {
    let (mut one, mut other) = (fresh(1, 1)?, fresh(1, 1)?);
    other.bucket = format!("{}x", one.bucket);
    require(take(&a, &one).await?.calls == 1, "a new bucket is empty")?;
    require(take(&b, &other).await?.calls == 1, "another bucket was taken for it")?;
    (one.wanted, other.wanted) = (0, 0);
    require(take(&b, &one).await?.calls == 0, "more was granted than wanted")
}

async fn filled((a, b): RateHandles) -> PropertyResult {
    // A call each microsecond: it is there by the time that anybody asks.
    let request = RateRequest { window: Duration::from_millis(1), ..fresh(1_000, 1_000)? };
    let mut granted = 0;
    for _ in 0..1_000 {
        granted += take(&a, &request).await?.calls;
        granted += take(&b, &request).await?.calls;
        if granted > 1_000 {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Err("nothing was added to an empty bucket".to_owned())
}
