//! The uses of call states: a hash for each state, until the state expires.

use std::{
    collections::HashSet,
    io,
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use pintle::server::{Claim, Claimed, Guarded, ReplayGuard, Reply, UsedState, http::nodes::NodeId};
use redis::Value;
use tokio::{runtime::Handle, sync::Notify, time::sleep};

use crate::{Redis, connection::Connection, keys::hex};

/// Claims a state. Returns a number and a value: 0 claimed, 1 claimed with the progress of an earlier claim, 2 used with other answers, 3 the
/// reply, 4 claimed by that process, 5 used without a reply.
const CLAIM: &str = r"
local phase = redis.call('HGET', KEYS[1], 'p')
local function claim()
  redis.call('HSET', KEYS[1], 'p', 'running', 'a', ARGV[1], 'f', ARGV[2], 'n', ARGV[3])
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
if not phase then claim() return {0, ''} end
if phase == 'released' then
  local progress = redis.call('HGET', KEYS[1], 'v')
  claim()
  redis.call('HDEL', KEYS[1], 'v')
  return {1, progress}
end
if redis.call('HGET', KEYS[1], 'a') ~= ARGV[1] then return {2, ''} end
if phase == 'replied' then return {3, redis.call('HGET', KEYS[1], 'v')} end
if phase == 'running' then return {4, redis.call('HGET', KEYS[1], 'n')} end
return {5, ''}";

/// Ends a claim: with a reply or progress, or as if it had not been made.
const END: &str = r"
if redis.call('HGET', KEYS[1], 'f') ~= ARGV[1] or redis.call('HGET', KEYS[1], 'p') ~= 'running' then return 0 end
if ARGV[2] == '' then redis.call('DEL', KEYS[1]) return 1 end
redis.call('HSET', KEYS[1], 'p', ARGV[2], 'v', ARGV[3])
return 1";

/// The time that a use is known after its state has expired: clocks of processes differ.
const MARGIN: u64 = 600_000;

/// The size of a reply that is kept. A larger one is not, and its state is used.
const MAX_REPLY: usize = 1 << 20;

/// The bounds of the interval in which a claim of another process is waited for.
const WAIT: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(500));

/// The states whose claims are being released. The next claim of this process waits for that.
#[derive(Default)]
pub(crate) struct PendingReleases {
    states: Mutex<HashSet<[u8; 32]>>,
    done: Notify,
}

impl PendingReleases {
    fn add(&self, state: [u8; 32]) {
        self.states.lock().unwrap_or_else(PoisonError::into_inner).insert(state);
    }

    fn remove(&self, state: &[u8; 32]) {
        self.states.lock().unwrap_or_else(PoisonError::into_inner).remove(state);
        self.done.notify_waiters();
    }

    async fn wait(&self, state: &[u8; 32]) {
        loop {
            // Created before looking, or a notification in between would be missed.
            let done = self.done.notified();
            if !self.states.lock().unwrap_or_else(PoisonError::into_inner).contains(state) {
                return;
            }
            done.await;
        }
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl Connection {
    async fn claim(&self, node: NodeId, used: &UsedState) -> io::Result<Claimed> {
        let key = self.keys.used_state(&used.state);
        let mut wait = WAIT.0;
        loop {
            let life = used.expires.saturating_sub(now());
            if life == 0 {
                // It may have been used and forgotten.
                return Ok(Claimed::Used);
            }
            // Random, so that no two claims of a state have the same.
            let fence =
                NodeId::random().ok_or_else(|| io::Error::other("the system has no random numbers"))?;
            let number = u64::from_str_radix(&fence.to_string(), 16).unwrap_or_default();
            let mut claim = redis::cmd("EVAL");
            claim.arg(CLAIM).arg(1).arg(&key).arg(hex(&used.answers)).arg(number.to_string());
            claim.arg(node.to_string()).arg(life.saturating_add(MARGIN));
            let (outcome, value): (i64, Value) = self.run(&claim).await?;
            let value: Vec<u8> = redis::from_redis_value(value).unwrap_or_default();
            match outcome {
                0 => return Ok(Claimed::First(Claim::new(number, None))),
                1 => return Ok(Claimed::First(Claim::new(number, Some(self.decode(&key, &value)?)))),
                2 => return Ok(Claimed::OtherAnswers),
                3 => return self.reply(&key, &value).map(Claimed::Replied),
                4 if self.is_alive(&String::from_utf8_lossy(&value)).await? => {}
                // The process that used it is gone, and nobody knows how far it got.
                _ => return Ok(Claimed::Used),
            }
            sleep(wait).await;
            wait = (2 * wait).min(WAIT.1);
        }
    }

    fn reply(&self, key: &str, value: &[u8]) -> io::Result<Reply> {
        let reply = self.decode(key, value)?;
        let malformed = || io::Error::new(io::ErrorKind::InvalidData, "a reply in Redis is malformed");
        let (is_error, body) = reply.split_first().ok_or_else(malformed)?;
        let body = std::str::from_utf8(body).map_err(|_| malformed())?;
        Ok(Reply::new(*is_error != 0, body))
    }

    async fn end(&self, state: &[u8; 32], fence: u64, phase: &str, value: &[u8]) -> io::Result<()> {
        let key = self.keys.used_state(state);
        let value = self.encode(&key, value)?;
        let mut end = redis::cmd("EVAL");
        end.arg(END).arg(1).arg(&key).arg(fence.to_string()).arg(phase).arg(value);
        self.run::<i64>(&end).await.map(drop)
    }
}

impl ReplayGuard for Redis {
    fn claim<'a>(&'a self, used: &'a UsedState) -> Guarded<'a, Claimed> {
        Box::pin(async move {
            self.0.releases.wait(&used.state).await;
            self.0.connection.claim(self.0.node.id(), used).await
        })
    }

    fn complete<'a>(&'a self, used: &'a UsedState, claim: &'a Claim, reply: Reply) -> Guarded<'a, ()> {
        Box::pin(async move {
            let connection = &self.0.connection;
            if reply.body.len() > MAX_REPLY {
                return connection.end(&used.state, claim.fence, "used", &[]).await;
            }
            let value = [&[u8::from(reply.is_error)], reply.body.as_bytes()].concat();
            connection.end(&used.state, claim.fence, "replied", &value).await
        })
    }

    fn release(&self, used: &UsedState, claim: Claim, progress: Option<Vec<u8>>) {
        // Without a runtime, the claim stays until the state expires.
        let Ok(runtime) = Handle::try_current() else { return };
        let (redis, state) = (self.clone(), used.state);
        self.0.releases.add(state);
        runtime.spawn(async move {
            let phase = if progress.is_some() { "released" } else { "" };
            let ended =
                redis.0.connection.end(&state, claim.fence, phase, &progress.unwrap_or_default()).await;
            redis.0.releases.remove(&state);
            if let Err(error) = ended {
                tracing::error!(%error, "the claim of a call state was not released: the state cannot be used again");
            }
        });
    }
}
