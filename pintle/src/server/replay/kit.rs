//! Checks a [`ReplayGuard`] that you wrote.
//!
//! ```
//! use pintle::server::{MemoryReplayGuard, replay_kit};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! if let Err(broken) = replay_kit::check(|| async { Ok(MemoryReplayGuard::new()) }).await {
//!     panic!("{broken:#?}");
//! }
//! # }
//! ```

use std::{future::Future, io, sync::Arc};

use pintle_proto::server::Reply;
use tokio::task::JoinSet;

use super::{Claim, Claimed, ReplayGuard, UsedState};
use crate::{
    properties::{Property, PropertyResult, check as check_properties},
    server::{clock::now, random},
    transport::kit::Broken,
};

/// Checks every property on a guard that `open` gives.
///
/// It may give the same one each time: every property has states of its own. What a guard forgets, and when, is for tests of
/// its own to check. It takes a moment, and ten seconds for each property that hangs.
///
/// # Errors
///
/// All properties that do not hold.
pub async fn check<G, F>(open: impl Fn() -> F) -> Result<(), Vec<Broken>>
where
    G: ReplayGuard,
    F: Future<Output = io::Result<G>>,
{
    check_properties(&PROPERTIES, async || open().await.map(|guard| Arc::new(guard) as Guard)).await
}

/// As many ask for one state at the same time.
const CROWD: usize = 32;

type Guard = Arc<dyn ReplayGuard>;

const PROPERTIES: [Property<Guard>; 5] = [
    ("the same again gets the reply, and other answers do not", |guard| Box::pin(replied(guard))),
    ("of many at the same time one is the first, and the others get its reply", |guard| {
        Box::pin(crowd(guard))
    }),
    ("what was released without progress is as if it had not been used", |guard| Box::pin(released(guard))),
    ("what was released with progress is claimed with it", |guard| Box::pin(progress(guard))),
    ("a claim that is over ends no other", |guard| Box::pin(fenced(guard))),
];

/// A state that nobody has used, with these answers.
fn fresh(answers: u8) -> Result<UsedState, String> {
    let state = random::bytes().map_err(|_| "the system has no random numbers".to_owned())?;
    Ok(UsedState::new(state, [answers; 32], now() + 60_000))
}

fn with_answers(used: &UsedState, answers: u8) -> UsedState {
    UsedState { answers: [answers; 32], ..used.clone() }
}

async fn claim(guard: &Guard, used: &UsedState) -> Result<Claimed, String> {
    guard.claim(used).await.map_err(|error| format!("`claim` failed: {error}"))
}

async fn first(guard: &Guard, used: &UsedState) -> Result<Claim, String> {
    match claim(guard, used).await? {
        Claimed::First(claim) => Ok(claim),
        other => Err(format!("expected the first claim, got {other:?}")),
    }
}

async fn complete(guard: &Guard, used: &UsedState, claim: &Claim, reply: &Reply) -> PropertyResult {
    let completed = guard.complete(used, claim, reply.clone()).await;
    completed.map_err(|error| format!("`complete` failed: {error}"))
}

async fn expect(guard: &Guard, used: &UsedState, expected: &Claimed) -> PropertyResult {
    let found = claim(guard, used).await?;
    if found == *expected { Ok(()) } else { Err(format!("expected {expected:?}, got {found:?}")) }
}

async fn replied(guard: Guard) -> PropertyResult {
    let (used, apart) = (fresh(1)?, fresh(1)?);
    let held = first(&guard, &used).await?;
    expect(&guard, &with_answers(&used, 2), &Claimed::OtherAnswers).await?;
    let reply = Reply::new(true, r#"{"code":1,"message":"\u00e4 \n"}"#);
    complete(&guard, &used, &held, &reply).await?;
    for _ in 0..2 {
        expect(&guard, &used, &Claimed::Replied(reply.clone())).await?;
        expect(&guard, &with_answers(&used, 2), &Claimed::OtherAnswers).await?;
    }
    first(&guard, &apart).await.map(drop)
}

async fn crowd(guard: Guard) -> PropertyResult {
    let used = fresh(1)?;
    let reply = Reply::new(false, "{}");
    let mut crowd = JoinSet::new();
    for _ in 0..CROWD {
        let (guard, used, reply) = (guard.clone(), used.clone(), reply.clone());
        crowd.spawn(async move {
            match claim(&guard, &used).await? {
                Claimed::First(held) => {
                    tokio::task::yield_now().await;
                    complete(&guard, &used, &held, &reply).await.map(|()| true)
                }
                Claimed::Replied(found) if found == reply => Ok(false),
                other => Err(format!("expected the reply, got {other:?}")),
            }
        });
    }
    let mut firsts = 0;
    while let Some(joined) = crowd.join_next().await {
        firsts += usize::from(joined.map_err(|error| error.to_string())??);
    }
    if firsts == 1 { Ok(()) } else { Err(format!("{firsts} of {CROWD} were the first")) }
}

async fn released(guard: Guard) -> PropertyResult {
    let used = fresh(1)?;
    for _ in 0..2 {
        let held = first(&guard, &used).await?;
        if held.progress.is_some() {
            return Err("a claim came with progress that nobody made".to_owned());
        }
        guard.release(&used, held, None);
    }
    // Nothing was done, so other answers are as good.
    first(&guard, &with_answers(&used, 2)).await.map(drop)
}

async fn progress(guard: Guard) -> PropertyResult {
    let used = fresh(1)?;
    let mut expected = None;
    for made in [vec![0, 255, 10], vec![1; 5000]] {
        let held = first(&guard, &used).await?;
        if held.progress != expected {
            return Err(format!("expected progress {expected:?}, got {:?}", held.progress));
        }
        guard.release(&used, held, Some(made.clone()));
        expected = Some(made);
    }
    let held = first(&guard, &used).await?;
    if held.progress == expected { Ok(()) } else { Err("the last progress is lost".to_owned()) }
}

async fn fenced(guard: Guard) -> PropertyResult {
    let used = fresh(1)?;
    let old = first(&guard, &used).await?;
    guard.release(&used, old.clone(), None);
    let held = first(&guard, &used).await?;
    guard.release(&used, old.clone(), Some(vec![1]));
    // Whether it says so or not, this changes nothing.
    let _ = guard.complete(&used, &old, Reply::new(false, r#"{"old":1}"#)).await;
    expect(&guard, &with_answers(&used, 2), &Claimed::OtherAnswers).await?;
    let reply = Reply::new(false, r#"{"new":1}"#);
    complete(&guard, &used, &held, &reply).await?;
    expect(&guard, &used, &Claimed::Replied(reply)).await
}
