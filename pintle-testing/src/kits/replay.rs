//! Checks a [`ReplayGuard`] that you wrote.
//!
//! ```
//! use pintle::server::MemoryReplayGuard;
//! use pintle_testing::kits;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! if let Err(broken) = kits::replay::check(async || { Ok(MemoryReplayGuard::new()) }).await {
//!     panic!("{broken:#?}");
//! }
//! # }
//! ```

use std::{io, sync::Arc};

use pintle::server::{Claim, Claimed, ReplayGuard, Reply, UsedState};

use super::harness::{Broken, Check, Checked, at_once, fresh as fresh_bytes, now, require, wrong};

/// Checks every property on a guard that `open` gives.
///
/// It may give the same one each time: every property has states of its own. What a guard forgets, and when, is for tests of
/// its own to check.
///
/// # Errors
///
/// All properties that do not hold.
pub async fn check<G: ReplayGuard>(open: impl AsyncFn() -> io::Result<G>) -> Result<(), Vec<Broken>> {
    let mut check = Check::new(async || open().await.map(|guard| Arc::new(guard) as Guard));
    check.that("the same again gets the reply, and other answers do not", replied).await;
    check.that("of many at the same time one is the first, and the others get its reply", crowd).await;
    check.that("what was released without progress is as if it had not been used", released).await;
    check.that("what was released with progress is claimed with it", progress).await;
    check.that("a claim that is over ends no other", fenced).await;
    check.end()
}

/// As many ask for one state at the same time.
const CROWD: usize = 32;

type Guard = Arc<dyn ReplayGuard>;

/// A state that nobody has used, with these answers.
fn fresh(answers: u8) -> UsedState {
    UsedState::new(fresh_bytes(), [answers; 32], now() + 60_000)
}

fn with_answers(used: &UsedState, answers: u8) -> UsedState {
    let mut used = used.clone();
    used.answers = [answers; 32];
    used
}

async fn claim(guard: &Guard, used: &UsedState) -> Checked<Claimed> {
    Ok(guard.claim(used).await?)
}

async fn first(guard: &Guard, used: &UsedState) -> Checked<Claim> {
    match claim(guard, used).await? {
        Claimed::First(claim) => Ok(claim),
        other => wrong(format!("expected the first claim, got {other:?}")),
    }
}

async fn complete(guard: &Guard, used: &UsedState, claim: &Claim, reply: &Reply) -> Checked {
    Ok(guard.complete(used, claim, reply.clone()).await?)
}

async fn expect(guard: &Guard, used: &UsedState, expected: &Claimed) -> Checked {
    let found = claim(guard, used).await?;
    require(found == *expected, &format!("expected {expected:?}, got {found:?}"))
}

async fn replied(guard: Guard) -> Checked {
    let (used, apart) = (fresh(1), fresh(1));
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

async fn crowd(guard: Guard) -> Checked {
    let used = fresh(1);
    let reply = Reply::new(false, "{}");
    let claims = (0..CROWD).map(|_| {
        let (guard, used, reply) = (guard.clone(), used.clone(), reply.clone());
        async move {
            match claim(&guard, &used).await? {
                Claimed::First(held) => {
                    tokio::task::yield_now().await;
                    complete(&guard, &used, &held, &reply).await.map(|()| true)
                }
                Claimed::Replied(found) if found == reply => Ok(false),
                other => wrong(format!("expected the reply, got {other:?}")),
            }
        }
    });
    let mut firsts = 0;
    for is_first in at_once(claims).await? {
        firsts += usize::from(is_first?);
    }
    require(firsts == 1, &format!("{firsts} of {CROWD} were the first"))
}

async fn released(guard: Guard) -> Checked {
    let used = fresh(1);
    for _ in 0..2 {
        let held = first(&guard, &used).await?;
        if held.progress.is_some() {
            return wrong("a claim came with progress that nobody made");
        }
        guard.release(&used, held, None);
    }
    // Nothing was done, so other answers are as good.
    first(&guard, &with_answers(&used, 2)).await.map(drop)
}

async fn progress(guard: Guard) -> Checked {
    let used = fresh(1);
    let mut expected = None;
    for made in [vec![0, 255, 10], vec![1; 5000]] {
        let held = first(&guard, &used).await?;
        if held.progress != expected {
            return wrong(format!("expected progress {expected:?}, got {:?}", held.progress));
        }
        guard.release(&used, held, Some(made.clone()));
        expected = Some(made);
    }
    let held = first(&guard, &used).await?;
    require(held.progress == expected, "the last progress is lost")
}

async fn fenced(guard: Guard) -> Checked {
    let used = fresh(1);
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
