//! Checks a [`Store`] that you wrote.
//!
//! ```
//! use pintle::server::store::MemoryStore;
//! use pintle_testing::kits;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let open = async || Ok(kits::two_handles(MemoryStore::new()));
//! if let Err(broken) = kits::store::check(open).await {
//!     panic!("{broken:#?}");
//! }
//! # }
//! ```

mod lossy;

use std::{future::Future as _, io, pin::pin, sync::Arc, task::Context, task::Waker, time::Duration};

use pintle::server::store::{Expected, GetOptions, Got, Key, Life, Put, Space, Store};

use super::harness::{Broken, Check, Checked, Handles, at_once, fresh, now, require, wrong};

pub use lossy::LossyStore;

/// Checks every property, with two handles of one store that `open` returns: as two processes have them.
///
/// It may return the same store each time: every property has keys of its own. It takes some seconds.
///
/// # Errors
///
/// All properties that do not hold.
pub async fn check<S: Store>(open: impl AsyncFn() -> io::Result<[S; 2]>) -> Result<(), Vec<Broken>> {
    let mut check = Check::new(async || {
        let [one, other] = open().await?;
        Ok(Handles { one: Arc::new(one) as Arc<dyn Store>, other: Arc::new(other) })
    });
    check.that("a value is returned as it was put", comes_back).await;
    check.that("a value is put once where none was expected", put_once).await;
    check.that("a value is changed only if it has the version that was read", changed).await;
    check.that("of changes at the same time one is made", crowd).await;
    check.that("what was removed is gone, once, and is not restored by a change", removed).await;
    check.that("a value is not sent to whoever has its version", known).await;
    check.that("keys do not affect each other, and an id is a name and not a pattern", apart).await;
    check.that("an idle value expires, and one in use does not", idle).await;
    check.that("a change gives a value a new life", new_life).await;
    check.that("a value lives until its time, and is not put after it", until).await;
    check.that("a counter counts every addition, whichever handle is asked", counted).await;
    check.that("the clock of the store is the same for all and runs", clock).await;
    check.that("a change whose caller is gone is made or not, and never in part", dropped).await;
    check.end()
}

const LONG: Life = Life::Idle(Duration::from_secs(60));
const SHORT: Duration = Duration::from_millis(1200);

/// Two handles of one store.
type Store2 = Handles<dyn Store>;

fn id() -> String {
    fresh::<12>().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn key(id: &str) -> Key<'_> {
    Key::new(Space::Session, id)
}

async fn expect_put(store: &Arc<dyn Store>, id: &str, at: Expected, value: &[u8], expected: Put) -> Checked {
    let put = store.put(key(id), at, value, LONG).await?;
    require(put == expected, &format!("`put` at {at:?} is {put:?}, expected {expected:?}"))
}

/// Checks what both handles find, without prolonging it.
async fn expect(store: &Store2, key: Key<'_>, expected: Option<(u64, &[u8])>) -> Checked {
    let expected =
        expected.map_or(Got::None, |(version, value)| Got::Value { version, value: value.to_vec() });
    for handle in [&store.one, &store.other] {
        let got = handle.get(key, GetOptions::default()).await?;
        require(got == expected, &format!("expected {expected:?}, found {got:?}"))?;
    }
    Ok(())
}

async fn comes_back(store: Store2) -> Checked {
    let every: Vec<u8> = (0..=255).collect();
    let large = every.repeat(1024);
    for value in [&b""[..], b"0", b"1\n2", &every, &large] {
        let id = id();
        expect(&store, key(&id), None).await?;
        expect_put(&store.one, &id, Expected::Absent, value, Put::Done(1)).await?;
        expect(&store, key(&id).owned_by(Some("ann")), Some((1, value))).await?;
    }
    Ok(())
}

async fn put_once(store: Store2) -> Checked {
    let id = id();
    expect_put(&store.one, &id, Expected::Absent, b"first", Put::Done(1)).await?;
    for handle in [&store.one, &store.other] {
        expect_put(handle, &id, Expected::Absent, b"second", Put::Other).await?;
    }
    expect(&store, key(&id), Some((1, b"first"))).await
}

async fn changed(store: Store2) -> Checked {
    let id = id();
    expect_put(&store.one, &id, Expected::Version(1), b"none", Put::Gone).await?;
    expect_put(&store.one, &id, Expected::Absent, b"first", Put::Done(1)).await?;
    expect_put(&store.other, &id, Expected::Version(1), b"second", Put::Done(2)).await?;
    for version in [0, 1, 3, 22, u64::MAX] {
        expect_put(&store.one, &id, Expected::Version(version), b"third", Put::Other).await?;
    }
    expect(&store, key(&id), Some((2, b"second"))).await?;
    expect_put(&store.one, &id, Expected::Version(2), b"third", Put::Done(3)).await?;
    expect(&store, key(&id), Some((3, b"third"))).await
}

async fn crowd(store: Store2) -> Checked {
    let id = id();
    for version in 0..8 {
        let at = if version == 0 { Expected::Absent } else { Expected::Version(version) };
        let writers = (0..16).map(|writer| {
            let (handle, id) = (store.of_turn(writer), id.clone());
            async move { handle.put(key(&id), at, &[0], LONG).await }
        });
        let mut done = 0;
        for put in at_once(writers).await? {
            match put? {
                Put::Done(_) => done += 1,
                Put::Other => {}
                other => return wrong(format!("`put` at {at:?} is {other:?}")),
            }
        }
        require(done == 1, &format!("of 16 changes at {at:?}, {done} were made"))?;
    }
    expect(&store, key(&id), Some((8, &[0]))).await
}

async fn removed(store: Store2) -> Checked {
    let id = id();
    expect_put(&store.one, &id, Expected::Absent, b"value", Put::Done(1)).await?;
    for (handle, there) in [(&store.other, true), (&store.one, false)] {
        require(handle.remove(key(&id)).await? == there, "`remove` does not know what was there")?;
        expect(&store, key(&id), None).await?;
    }
    expect_put(&store.one, &id, Expected::Version(1), b"again", Put::Gone).await?;
    expect(&store, key(&id), None).await?;
    expect_put(&store.one, &id, Expected::Absent, b"new", Put::Done(1)).await
}

async fn known(store: Store2) -> Checked {
    let id = id();
    let unless = |version| GetOptions::default().unless(Some(version));
    require(store.one.get(key(&id), unless(1)).await? == Got::None, "a key is there that nobody has put")?;
    expect_put(&store.one, &id, Expected::Absent, b"value", Put::Done(1)).await?;
    for (version, same) in [(1, true), (0, false), (2, false), (11, false), (u64::MAX, false)] {
        let got = store.other.get(key(&id), unless(version)).await?;
        let expected = if same { Got::Same } else { Got::Value { version: 1, value: b"value".to_vec() } };
        require(got == expected, &format!("`get` unless {version} is {got:?}"))?;
    }
    Ok(())
}

async fn apart(store: Store2) -> Checked {
    let mark = id();
    let ids = ["", "*", "kit-?", "{kit}", "}{", "kit\r\nDEL x", "kit:*", "kit\0", "\u{4e16}", "KIT", "kit"];
    let ids: Vec<_> = ids.iter().map(|id| format!("{id}{mark}")).collect();
    for id in &ids {
        expect_put(&store.one, id, Expected::Absent, id.as_bytes(), Put::Done(1)).await?;
    }
    for id in &ids {
        for space in [Space::State, Space::Nonce, Space::Rate, Space::Lease] {
            expect(&store, Key::new(space, id), None).await?;
        }
        expect(&store, key(id), Some((1, id.as_bytes()))).await?;
        require(store.other.remove(key(id)).await?, "a key was removed with another one")?;
        expect(&store, key(id), None).await?;
    }
    Ok(())
}

async fn idle(store: Store2) -> Checked {
    let (unused, used) = (id(), id());
    let life = Life::Idle(SHORT);
    for id in [&unused, &used] {
        store.one.put(key(id), Expected::Absent, b"value", life).await?;
    }
    let prolong = GetOptions::default().prolong(SHORT);
    for turn in 0..6 {
        if turn == 0 {
            expect(&store, key(&unused), Some((1, b"value"))).await?;
        }
        tokio::time::sleep(SHORT / 3).await;
        let how = if turn % 2 == 0 { prolong } else { prolong.unless(Some(1)) };
        require(store.of_turn(turn).get(key(&used), how).await? != Got::None, "a value in use expired")?;
    }
    expect(&store, key(&unused), None).await?;
    expect_put(&store.one, &unused, Expected::Version(1), b"again", Put::Gone).await?;
    expect_put(&store.other, &unused, Expected::Absent, b"again", Put::Done(1)).await
}

async fn new_life(store: Store2) -> Checked {
    let (longer, shorter) = (id(), id());
    store.one.put(key(&longer), Expected::Absent, b"value", Life::Idle(SHORT)).await?;
    expect_put(&store.other, &longer, Expected::Version(1), b"value", Put::Done(2)).await?;
    expect_put(&store.one, &shorter, Expected::Absent, b"value", Put::Done(1)).await?;
    store.other.put(key(&shorter), Expected::Version(1), b"value", Life::Idle(SHORT)).await?;
    tokio::time::sleep(2 * SHORT).await;
    expect(&store, key(&longer), Some((2, b"value"))).await?;
    expect(&store, key(&shorter), None).await
}

fn state(id: &str) -> Key<'_> {
    Key::new(Space::State, id)
}

async fn until(store: Store2) -> Checked {
    let (soon, late, over, last) = (id(), id(), id(), id());
    let time = store.one.now().await?;
    for (id, until) in [(&soon, time + 1500), (&late, time + 3_600_000), (&last, u64::MAX)] {
        let put = store.one.put(state(id), Expected::Absent, b"value", Life::Until(until)).await?;
        require(put == Put::Done(1), &format!("`put` until {until} at {time} is {put:?}"))?;
    }
    for until in [0, time - 1000] {
        let put = store.other.put(state(&over), Expected::Absent, b"value", Life::Until(until)).await?;
        require(put == Put::Forgotten, &format!("`put` until {until}, which is over, is {put:?}"))?;
        expect(&store, state(&over), None).await?;
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    expect(&store, state(&soon), None).await?;
    expect(&store, state(&late), Some((1, b"value"))).await?;
    let put = store.other.put(state(&soon), Expected::Absent, b"value", Life::Until(time + 1500)).await?;
    require(put == Put::Forgotten, &format!("what was there until its time is put again: {put:?}"))
}

fn counter(id: &str) -> Key<'_> {
    Key::new(Space::Seen, id)
}

async fn counted(store: Store2) -> Checked {
    let id = id();
    let additions = (0..64).map(|turn| {
        let (handle, id) = (store.of_turn(turn), id.clone());
        async move { handle.count(counter(&id), 1, LONG).await }
    });
    let mut counts = at_once(additions).await?.into_iter().collect::<io::Result<Vec<_>>>()?;
    counts.sort_unstable();
    require(counts == (1..=64).collect::<Vec<_>>(), &format!("64 additions returned {counts:?}"))?;
    require(store.one.count(counter(&id), -60, LONG).await? == 4, "60 of 64 were not taken away")?;
    let other = format!("{id}2");
    require(store.one.count(counter(&other), 5, Life::Idle(SHORT)).await? == 5, "a new counter is not 0")?;
    tokio::time::sleep(SHORT / 2).await;
    store.other.count(counter(&other), 1, LONG).await?;
    tokio::time::sleep(SHORT).await;
    let again = store.other.count(counter(&other), 1, LONG).await?;
    require(again == 1, &format!("an addition has changed the life of its counter: {again}"))?;
    let over = store.one.count(counter(&format!("{id}3")), 1, Life::Until(1)).await;
    require(over.is_err(), "a counter whose life is over has counted")
}

async fn clock(store: Store2) -> Checked {
    let before = store.one.now().await?;
    tokio::time::sleep(Duration::from_millis(20)).await;
    let after = store.other.now().await?;
    require(
        before + 10 < after && after < before + 30_000,
        &format!("the clock was {before}, then {after}"),
    )?;
    require(after.abs_diff(now()) < 600_000, &format!("the clock is {after}: not that of the Unix epoch"))
}

async fn dropped(store: Store2) -> Checked {
    for polls in [1, 2, 3] {
        let id = id();
        {
            let mut put = pin!(store.one.put(key(&id), Expected::Absent, b"whole", LONG));
            for _ in 0..polls {
                if put.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        // It may still be on its way.
        let put = store.one.put(key(&id), Expected::Absent, b"whole", LONG).await?;
        require(matches!(put, Put::Done(1) | Put::Other), &format!("`put` is {put:?}"))?;
        expect(&store, key(&id), Some((1, b"whole"))).await?;
    }
    Ok(())
}
