use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use pintle_proto::server::Reply;
use tokio::time::timeout;

use super::{
    active::{ActiveClaim, UsedState},
    guard::{Claimed, ReplayGuard},
    record::{MAX_REPLY, StatePhase, StateRecord},
};
use crate::server::{
    clock,
    store::{MemoryStore, Store, WatchedStore},
};

const LEASE: Duration = Duration::from_secs(15);

fn guard(store: &Arc<impl Store>) -> Arc<ReplayGuard> {
    Arc::new(ReplayGuard::new(store.clone()))
}

/// A store that processes share.
fn shared() -> Arc<WatchedStore> {
    Arc::new(WatchedStore::with_lease(LEASE))
}

fn used(state: &str, answers: u8) -> UsedState {
    UsedState {
        id: state.into(),
        answers: [answers; 32],
        principal: Some("ann".into()),
        expires: clock::now() + 60_000,
    }
}

async fn first(guard: &Arc<ReplayGuard>, used: &UsedState) -> (Arc<ActiveClaim>, Option<Vec<u8>>) {
    match guard.claim(used).await.unwrap() {
        Claimed::First(claim, progress) => (claim, progress),
        other => panic!("{other:?}"),
    }
}

/// Waits for the end of what runs in tasks.
async fn settled() {
    tokio::time::sleep(Duration::from_secs(1)).await;
}

fn reply(text: &str) -> Reply {
    Reply::new(false, text)
}

#[track_caller]
fn assert_replied(claimed: &Claimed, text: &str) {
    assert!(matches!(&claimed, Claimed::Replied(reply) if &*reply.body == text), "{claimed:?}");
}

#[tokio::test(start_paused = true)]
async fn the_same_again_gets_the_reply_and_other_answers_do_not_at_any_process() {
    for store in [shared() as Arc<dyn Store>, Arc::new(MemoryStore::new())] {
        let (a, b) = (guard(&Arc::new(store.clone())), guard(&Arc::new(store)));
        let (claim, progress) = first(&a, &used("s", 1)).await;
        assert_eq!(progress, None);
        assert!(matches!(a.claim(&used("s", 2)).await.unwrap(), Claimed::OtherAnswers));
        assert!(matches!(b.claim(&used("s", 2)).await.unwrap(), Claimed::OtherAnswers));
        a.complete(&claim, reply("done")).await.unwrap();
        for guard in [&a, &b] {
            assert_replied(&guard.claim(&used("s", 1)).await.unwrap(), "done");
            assert!(matches!(guard.claim(&used("s", 2)).await.unwrap(), Claimed::OtherAnswers));
        }
        first(&b, &used("another", 1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn of_many_at_the_same_time_one_is_the_first_and_the_others_get_its_reply() {
    let store = shared();
    let guards = [guard(&store), guard(&store)];
    let claims: Vec<_> = (0..32)
        .map(|turn| {
            let guard = guards[turn % 2].clone();
            tokio::spawn(async move {
                match guard.claim(&used("s", 1)).await.unwrap() {
                    Claimed::First(claim, _) => {
                        tokio::time::sleep(Duration::from_secs(1)).await;
                        guard.complete(&claim, reply("done")).await.unwrap();
                        1
                    }
                    replied => {
                        assert_replied(&replied, "done");
                        0
                    }
                }
            })
        })
        .collect();
    let mut firsts = 0;
    for claim in claims {
        firsts += claim.await.unwrap();
    }
    assert_eq!(firsts, 1);
}

#[tokio::test(start_paused = true)]
async fn what_was_released_is_claimed_with_its_progress_and_by_other_answers_too() {
    for store in [shared(), Arc::new(WatchedStore::default())] {
        let (a, b) = (guard(&store), guard(&store));
        let mut expected = None;
        for (guard, made) in [(&a, None), (&b, Some(vec![0, 255])), (&a, Some(vec![1; 5000])), (&b, None)] {
            let (claim, progress) = first(guard, &used("s", 1)).await;
            assert_eq!(progress, expected);
            guard.release(&claim, made.clone());
            expected = made;
        }
        settled().await;
        first(&a, &used("s", 2)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_over_ends_no_other() {
    let store = shared();
    let (a, b) = (guard(&store), guard(&store));
    let (old, _) = first(&a, &used("s", 1)).await;
    a.release(&old, None);
    let (claim, _) = first(&b, &used("s", 1)).await;
    assert!(a.save(&old, vec![1]).await.unwrap_err().to_string().contains("taken over"));
    a.release(&old, Some(vec![2]));
    a.complete(&old, reply("old")).await.unwrap();
    b.complete(&claim, reply("new")).await.unwrap();
    assert_replied(&guard(&store).claim(&used("s", 1)).await.unwrap(), "new");
}

#[tokio::test(start_paused = true)]
async fn a_state_whose_process_is_gone_is_taken_over_with_what_was_saved() {
    let store = shared();
    let stays = guard(&store);
    let mut saved: Option<Vec<u8>> = None;
    // Also if the next one ends before it has saved anything.
    for progress in [None, Some(b"begun".to_vec()), None, Some(b"done".to_vec()), None] {
        let gone = guard(&store);
        let (claim, found) = first(&gone, &used("s", 1)).await;
        assert_eq!(found, saved);
        if let Some(progress) = progress {
            gone.save(&claim, progress.clone()).await.unwrap();
            saved = Some(progress);
        }
        assert!(matches!(stays.claim(&used("s", 2)).await.unwrap(), Claimed::OtherAnswers));
        // It is alive as long as it is there, and nobody takes over what it has.
        assert!(timeout(3 * LEASE, stays.claim(&used("s", 1))).await.is_err());
    }
    let (claim, found) = first(&stays, &used("s", 1)).await;
    assert_eq!(found, saved);
    // Its own sign of life was lost: others take over, and it is told.
    let thief = guard(&store);
    store.forgets_leases.store(true, Ordering::SeqCst);
    first(&thief, &used("s", 1)).await;
    assert!(stays.save(&claim, vec![9]).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_reply_is_lost_is_nobodys() {
    let store = shared();
    let (a, b) = (guard(&store), guard(&store));
    first(&a, &used("before", 1)).await;
    for state in ["s", "t"] {
        store.loses_put.store(true, Ordering::SeqCst);
        a.claim(&used(state, 1)).await.unwrap_err();
        settled().await;
        let (claim, progress) = timeout(LEASE, first(&b, &used(state, 2))).await.unwrap();
        assert_eq!(progress, None);
        // A release whose reply is lost is made.
        store.loses_put.store(true, Ordering::SeqCst);
        b.release(&claim, Some(vec![7]));
        settled().await;
        assert_eq!(first(&a, &used(state, 1)).await.1, Some(vec![7]));
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_nobody_waits_for_is_nobodys() {
    let store = shared();
    let a = guard(&store);
    first(&a, &used("before", 1)).await;
    let gate = store.hold_puts().await;
    assert!(timeout(Duration::from_millis(1), a.claim(&used("s", 1))).await.is_err());
    drop(gate);
    let (claim, _) = first(&a, &used("s", 2)).await;
    // Nor is a reply whose write is lost.
    store.loses_put.store(true, Ordering::SeqCst);
    a.complete(&claim, reply("done")).await.unwrap_err();
    assert_replied(&a.claim(&used("s", 2)).await.unwrap(), "done");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_replied(&guard(&store).claim(&used("s", 2)).await.unwrap(), "done");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_claimed_while_the_store_is_down_and_all_of_it_afterwards() {
    let store = shared();
    let a = guard(&store);
    let (claim, _) = first(&a, &used("s", 1)).await;
    store.is_down.store(true, Ordering::SeqCst);
    a.claim(&used("t", 1)).await.unwrap_err();
    assert!(a.save(&claim, vec![1]).await.is_err());
    a.release(&claim, Some(vec![1]));
    a.claim(&used("s", 1)).await.unwrap_err();
    store.is_down.store(false, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(first(&a, &used("s", 1)).await.1, Some(vec![1]));
    first(&a, &used("t", 1)).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_not_kept_is_used() {
    let a = guard(&Arc::new(MemoryStore::new().bytes(600)));
    let small = used("small", 1);
    let (claim, _) = first(&a, &small).await;
    a.complete(&claim, reply(&"x".repeat(1000))).await.unwrap();
    assert!(matches!(a.claim(&small).await.unwrap(), Claimed::Used));
    let a = guard(&Arc::new(MemoryStore::new()));
    let (claim, _) = first(&a, &used("large", 1)).await;
    a.complete(&claim, reply(&"x".repeat(MAX_REPLY + 1))).await.unwrap();
    assert!(matches!(a.claim(&used("large", 1)).await.unwrap(), Claimed::Used));
    let over = UsedState { expires: clock::now(), ..used("over", 1) };
    assert!(matches!(a.claim(&over).await.unwrap(), Claimed::Used), "it may have been used");
}

#[test]
fn a_record_is_read_as_it_was_written_and_nothing_else_is_one() {
    let made = || Some(vec![0, 10, 255]);
    for phase in [
        StatePhase::Running { node: [3; 16], progress: None },
        StatePhase::Running { node: [3; 16], progress: made() },
        StatePhase::Released { progress: None },
        StatePhase::Released { progress: made() },
        StatePhase::Replied(Reply::new(false, "{}")),
        StatePhase::Replied(Reply::new(true, "")),
        StatePhase::Used,
    ] {
        let record = StateRecord { tag: [1; 16], answers: [2; 32], phase };
        let written = record.encode();
        assert_eq!(StateRecord::decode(&written).unwrap(), record);
        assert!(StateRecord::decode(&written[..48]).is_err());
    }
    assert!(StateRecord::decode(&[b'9'; 100]).is_err());
}

#[tokio::test(start_paused = true)]
async fn a_save_of_which_nobody_heard_does_not_keep_the_reply_from_being_kept() {
    let store = shared();
    let (a, b) = (guard(&store), guard(&store));
    let (claim, _) = first(&a, &used("s", 1)).await;
    store.loses_put.store(true, Ordering::SeqCst);
    assert!(a.save(&claim, vec![1]).await.is_err());
    a.complete(&claim, reply("done")).await.unwrap();
    assert_replied(&b.claim(&used("s", 1)).await.unwrap(), "done");
}

#[tokio::test(start_paused = true)]
async fn what_is_over_is_not_saved_even_if_nobody_heard_of_its_end() {
    let store = shared();
    let (a, b) = (guard(&store), guard(&store));
    let (claim, _) = first(&a, &used("s", 1)).await;
    store.loses_put.store(true, Ordering::SeqCst);
    a.release(&claim, Some(vec![1]));
    settled().await;
    assert!(a.save(&claim, vec![2]).await.is_err());
    assert_eq!(first(&b, &used("s", 2)).await.1, Some(vec![1]));
}
