//! Blocks of calls out of a bucket that processes share.

use std::{io, time::Duration};

use crate::server::store::{Expected, GetOptions, Got, Key, Life, Put, Space, Store};

/// How often a block is tried to be taken while other processes take theirs.
const MAX_TRIES: usize = 8;

/// A request of a process for calls of a bucket.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockRequest {
    /// The number of calls in a window. It is the capacity of the bucket.
    pub(super) calls: u32,
    /// The time in which an empty bucket is filled.
    pub(super) window: Duration,
    /// The calls that were made already. They are taken in any case, down to an empty bucket minus its capacity.
    pub(super) spent: u32,
    /// The calls that the process wants to be able to make.
    pub(super) wanted: u32,
}

/// The calls that a process may make.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Block {
    pub(super) calls: u32,
    /// The time until there is at least one more in the bucket. Zero if there is one.
    pub(super) wait: Duration,
}

/// The content of a bucket: the calls that are left, less than none after calls on credit, at a time of the store.
#[derive(Clone, Copy)]
struct Level {
    left: f64,
    at: u64,
}

impl BlockRequest {
    /// Takes calls out of the bucket: the time, the level and the new level are three round trips. A bucket is full when it is first
    /// used, and is filled again at a constant rate, by the clock of the store.
    pub(super) async fn take(&self, store: &dyn Store, bucket: &str) -> io::Result<Block> {
        let key = Key::new(Space::Rate, bucket);
        let life = Life::Idle(2 * self.window + Duration::from_secs(1));
        for _ in 0..MAX_TRIES {
            let now = store.now().await?;
            let (at, level) = match store.get(key, GetOptions::default()).await? {
                Got::Value { version, value } => (Expected::Version(version), Level::decode(&value)?),
                Got::None | Got::Same => (Expected::Absent, Level { left: self.capacity(), at: now }),
            };
            let (level, block) = self.taken(level, now);
            if let Put::Done(_) = store.put(key, at, &level.encode(), life).await? {
                return Ok(block);
            }
        }
        Err(io::Error::other("other processes take calls out of the same bucket all the time"))
    }

    fn capacity(&self) -> f64 {
        f64::from(self.calls.max(1))
    }

    fn taken(&self, level: Level, now: u64) -> (Level, Block) {
        let capacity = self.capacity();
        let per_second = capacity / self.window.as_secs_f64().max(0.001);
        let since = Duration::from_millis(now.saturating_sub(level.at)).as_secs_f64();
        let filled = (level.left + since * per_second).min(capacity) - f64::from(self.spent);
        let filled = filled.max(-capacity);
        let taken = filled.floor().clamp(0.0, f64::from(self.wanted));
        let left = filled - taken;
        let wait = Duration::from_secs_f64((1.0 - left).max(0.0) / per_second);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is at most what was wanted"
        )]
        (Level { left, at: now }, Block { calls: taken as u32, wait })
    }
}

impl Level {
    fn encode(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.left.to_le_bytes());
        bytes[8..].copy_from_slice(&self.at.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> io::Result<Self> {
        let malformed = || io::Error::new(io::ErrorKind::InvalidData, "a stored rate is malformed");
        let (left, at) = bytes.split_first_chunk().ok_or_else(malformed)?;
        let (left, at) = (f64::from_le_bytes(*left), at.try_into().map_err(|_| malformed())?);
        let level = Self { left, at: u64::from_le_bytes(at) };
        if level.left.is_finite() { Ok(level) } else { Err(malformed()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::store::MemoryStore;

    fn request(calls: u32, spent: u32, wanted: u32) -> BlockRequest {
        BlockRequest { calls, window: Duration::from_secs(1000), spent, wanted }
    }

    #[tokio::test(start_paused = true)]
    async fn a_bucket_has_its_calls_once_and_is_filled_again() {
        let store = MemoryStore::new();
        let mut granted = Vec::new();
        let mut wait = Duration::ZERO;
        for _ in 0..4 {
            let block = request(10, 0, 4).take(&store, "b").await.unwrap();
            granted.push(block.calls);
            wait = block.wait;
        }
        assert_eq!(granted, [4, 4, 2, 0]);
        assert!(wait > Duration::from_secs(99) && wait <= Duration::from_secs(100), "{wait:?}");
        tokio::time::advance(Duration::from_secs(250)).await;
        assert_eq!(request(10, 0, 4).take(&store, "b").await.unwrap().calls, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_spent_is_taken_in_any_case_down_to_the_capacity() {
        let store = MemoryStore::new();
        assert_eq!(request(10, 7, 5).take(&store, "b").await.unwrap().calls, 3);
        assert_eq!(request(10, 1_000, 5).take(&store, "b").await.unwrap().calls, 0);
        let block = request(10, 0, 5).take(&store, "b").await.unwrap();
        assert!(block.calls == 0 && block.wait <= Duration::from_secs(1200), "{block:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_bucket_with_calls_on_credit_is_known_until_it_is_full() {
        let store = MemoryStore::new();
        assert_eq!(request(10, 20, 0).take(&store, "b").await.unwrap().calls, 0);
        // It is full after two windows.
        tokio::time::advance(Duration::from_millis(1_999_950)).await;
        assert_eq!(request(10, 0, 10).take(&store, "b").await.unwrap().calls, 9);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_has_a_part_of_the_next_call_already() {
        let store = MemoryStore::new();
        assert_eq!(request(10, 0, 10).take(&store, "b").await.unwrap().calls, 10);
        tokio::time::advance(Duration::from_secs(75)).await;
        let block = request(10, 0, 1).take(&store, "b").await.unwrap();
        assert_eq!(block.calls, 0);
        assert_eq!(block.wait.as_secs_f64().round(), 25.0);
        // One that is there needs no wait.
        tokio::time::advance(Duration::from_secs(300)).await;
        let block = request(10, 0, 1).take(&store, "b").await.unwrap();
        assert_eq!(block, Block { calls: 1, wait: Duration::ZERO });
    }
}
