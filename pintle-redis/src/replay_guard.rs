//! The uses of call states: a hash for each state, until the state expires.

use std::{
    collections::HashSet,
    io,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use pintle::server::{Claim, Claimed, Guarded, ReplayGuard, Reply, UsedState, http::nodes::NodeId};
use redis::Value;
use tokio::{
    runtime::Handle,
    sync::Notify,
    time::{sleep, timeout},
};

use crate::{
    Redis,
    connection::{Connection, known_until},
    keys::hex,
};

/// Claims a state. Returns a number and a value: 0 claimed, 1 claimed with the progress of an earlier claim, 2 used with other answers, 3 the
/// reply, 4 claimed by that process, 5 used without a reply. The claim of the process `ARGV[5]`, which is gone, is taken over.
///
/// The time is that of Redis. A state that expired so long ago that its use may be forgotten is used; and nobody waits for the claim of one
/// that has expired.
const CLAIM: &str = r"
local now = tonumber(redis.call('TIME')[1]) * 1000
if now > tonumber(ARGV[4]) then return {5, ''} end
local phase = redis.call('HGET', KEYS[1], 'p')
local function claim()
  redis.call('HSET', KEYS[1], 'p', 'running', 'a', ARGV[1], 'f', ARGV[2], 'n', ARGV[3])
  redis.call('PEXPIREAT', KEYS[1], ARGV[4])
end
if not phase then claim() return {0, ''} end
local is_gone = phase == 'running' and redis.call('HGET', KEYS[1], 'n') == ARGV[5]
if phase ~= 'released' and redis.call('HGET', KEYS[1], 'a') ~= ARGV[1] then return {2, ''} end
if phase == 'released' or is_gone then
  -- It stays, in case this process ends too.
  local progress = redis.call('HGET', KEYS[1], 'v')
  claim()
  if progress then return {1, progress} end
  return {0, ''}
end
if phase == 'replied' then return {3, redis.call('HGET', KEYS[1], 'v')} end
if phase == 'running' and now <= tonumber(ARGV[6]) then return {4, redis.call('HGET', KEYS[1], 'n')} end
return {5, ''}";

/// Records the progress of a claim. Returns 0 if it is over.
const SAVE: &str = r"
if redis.call('HGET', KEYS[1], 'f') ~= ARGV[1] or redis.call('HGET', KEYS[1], 'p') ~= 'running' then return 0 end
redis.call('HSET', KEYS[1], 'v', ARGV[2])
return 1";

/// Ends a claim: with a reply or progress, or as if it had not been made.
const END: &str = r"
if redis.call('HGET', KEYS[1], 'f') ~= ARGV[1] or redis.call('HGET', KEYS[1], 'p') ~= 'running' then return 0 end
if ARGV[2] == '' then redis.call('DEL', KEYS[1]) return 1 end
redis.call('HSET', KEYS[1], 'p', ARGV[2], 'v', ARGV[3])
return 1";

/// Ends a claim whose reply was lost, as if it had not been made: the progress of an earlier claim stays. Returns 0 if there is no such claim.
const UNDO: &str = r"
if redis.call('HGET', KEYS[1], 'f') ~= ARGV[1] or redis.call('HGET', KEYS[1], 'p') ~= 'running' then return 0 end
if redis.call('HEXISTS', KEYS[1], 'v') == 1 then return redis.call('HSET', KEYS[1], 'p', 'released') + 1 end
return redis.call('DEL', KEYS[1])";

/// The time for which a use is known after its state has expired.
const MARGIN: Duration = Duration::from_secs(600);

/// The size of a reply that is kept. A larger one is not, and its state is used.
const MAX_REPLY: usize = 1 << 20;

/// The bounds of the interval in which a claim of another process is waited for.
const WAIT: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(500));

/// How often the end of a claim is tried again.
const END_ATTEMPTS: usize = 60;

/// The number of claims whose reply was lost that are ended at a time. Others stay until their state expires.
const MAX_UNCLEAR: usize = 10_000;

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

    /// Adds a state whose claim may have been made. Returns `false` if there are too many.
    fn add_unclear(&self, state: [u8; 32]) -> bool {
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = states.len() < MAX_UNCLEAR;
        if has_room {
            states.insert(state);
        }
        has_room
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

/// A claim that is sent to Redis. If its reply is lost, or nobody waits for it any more, the claim is ended: others would wait for it.
struct SentClaim<'a> {
    redis: &'a Redis,
    state: [u8; 32],
    fence: u64,
    is_answered: bool,
}

impl Drop for SentClaim<'_> {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        let Ok(runtime) = Handle::try_current() else { return };
        let (redis, state, fence) = (self.redis.clone(), self.state, self.fence);
        if !redis.0.releases.add_unclear(state) {
            return;
        }
        runtime.spawn(async move {
            let undone = redis.0.connection.undo(&state, fence).await;
            redis.0.releases.remove(&state);
            match undone {
                // The claim may be on its way on a connection that was lost.
                Ok(false) => {
                    sleep(redis.0.connection.options.timeout).await;
                    let _ = redis.0.connection.undo(&state, fence).await;
                }
                Ok(true) => {}
                Err(error) => {
                    tracing::error!(%error, "the claim of a call state may not be released: the state cannot be used then");
                }
            }
        });
    }
}

impl Redis {
    async fn claim_state(&self, used: &UsedState) -> io::Result<Claimed> {
        let (connection, node) = (&self.0.connection, self.0.node.id());
        let key = connection.keys.used_state(&used.state);
        let (mut wait, mut gone) = (WAIT.0, String::new());
        loop {
            // Random, so that no two claims of a state have the same.
            let fence = NodeId::random()
                .ok_or_else(|| io::Error::other("the system's random number generator failed"))?;
            let number = u64::from_str_radix(&fence.to_string(), 16).unwrap_or_default();
            let mut claim = redis::cmd("EVAL");
            claim.arg(CLAIM).arg(1).arg(&key).arg(hex(&used.answers)).arg(number.to_string());
            claim.arg(node.to_string()).arg(known_until(used.expires, MARGIN)).arg(&gone).arg(used.expires);
            let mut sent = SentClaim { redis: self, state: used.state, fence: number, is_answered: false };
            let (outcome, value): (i64, Value) = connection.run(&claim).await?;
            sent.is_answered = outcome != 1;
            let value: Vec<u8> = redis::from_redis_value(value).unwrap_or_default();
            match outcome {
                0 => return Ok(Claimed::First(Claim::new(number, None))),
                1 => {
                    let progress = connection.decode(&key, &value)?;
                    sent.is_answered = true;
                    return Ok(Claimed::First(Claim::new(number, Some(progress))));
                }
                2 => return Ok(Claimed::OtherAnswers),
                3 => return connection.reply(&key, &value).map(Claimed::Replied),
                4 => {
                    let owner = String::from_utf8_lossy(&value).into_owned();
                    if !connection.is_alive(&owner).await? {
                        gone = owner;
                        continue;
                    }
                }
                _ => return Ok(Claimed::Used),
            }
            sleep(wait).await;
            wait = (2 * wait).min(WAIT.1);
        }
    }
}

impl Connection {
    fn reply(&self, key: &str, value: &[u8]) -> io::Result<Reply> {
        let reply = self.decode(key, value)?;
        let malformed = || io::Error::new(io::ErrorKind::InvalidData, "a reply in Redis is malformed");
        let (is_error, body) = reply.split_first().ok_or_else(malformed)?;
        let body = std::str::from_utf8(body).map_err(|_| malformed())?;
        Ok(Reply::new(*is_error != 0, body))
    }

    async fn save(&self, state: &[u8; 32], fence: u64, progress: &[u8]) -> io::Result<()> {
        let key = self.keys.used_state(state);
        let mut save = redis::cmd("EVAL");
        save.arg(SAVE).arg(1).arg(&key).arg(fence.to_string()).arg(self.encode(&key, progress)?);
        match self.run(&save).await? {
            1 => Ok(()),
            _ => Err(io::Error::other("another process has taken over the call")),
        }
    }

    /// Ends a claim. It is repeated if Redis cannot be reached, because others wait for it.
    async fn end_surely(&self, state: &[u8; 32], fence: u64, phase: &str, value: &[u8]) -> io::Result<()> {
        let mut ended = self.end(state, fence, phase, value).await;
        for _ in 0..END_ATTEMPTS {
            if ended.is_ok() {
                break;
            }
            sleep(WAIT.1).await;
            ended = self.end(state, fence, phase, value).await;
        }
        ended
    }

    /// Ends a claim that may have been made. Returns whether it was. It is repeated if Redis cannot be reached.
    async fn undo(&self, state: &[u8; 32], fence: u64) -> io::Result<bool> {
        let mut undo = redis::cmd("EVAL");
        undo.arg(UNDO).arg(1).arg(self.keys.used_state(state)).arg(fence.to_string());
        let mut undone = self.run::<i64>(&undo).await;
        for _ in 0..END_ATTEMPTS {
            if undone.is_ok() {
                break;
            }
            sleep(WAIT.1).await;
            undone = self.run(&undo).await;
        }
        undone.map(|undone| undone > 0)
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
            let released =
                timeout(self.0.connection.options.timeout, self.0.releases.wait(&used.state)).await;
            released.map_err(|_| {
                io::Error::new(io::ErrorKind::TimedOut, "the claim before is not released yet")
            })?;
            self.claim_state(used).await
        })
    }

    fn save<'a>(&'a self, used: &'a UsedState, claim: &'a Claim, progress: Vec<u8>) -> Guarded<'a, ()> {
        Box::pin(async move { self.0.connection.save(&used.state, claim.fence, &progress).await })
    }

    fn complete<'a>(&'a self, used: &'a UsedState, claim: &'a Claim, reply: Reply) -> Guarded<'a, ()> {
        Box::pin(async move {
            let (phase, value) = match reply.body.len() > MAX_REPLY {
                true => ("used", Vec::new()),
                false => ("replied", [&[u8::from(reply.is_error)], reply.body.as_bytes()].concat()),
            };
            let ended = self.0.connection.end(&used.state, claim.fence, phase, &value).await;
            if ended.is_err() {
                // The call does not wait for it.
                let (redis, state, fence) = (self.clone(), used.state, claim.fence);
                tokio::spawn(
                    async move { redis.0.connection.end_surely(&state, fence, phase, &value).await },
                );
            }
            ended
        })
    }

    fn release(&self, used: &UsedState, claim: Claim, progress: Option<Vec<u8>>) {
        // Without a runtime, the claim stays until the state expires.
        let Ok(runtime) = Handle::try_current() else { return };
        let (redis, state) = (self.clone(), used.state);
        self.0.releases.add(state);
        runtime.spawn(async move {
            let phase = if progress.is_some() { "released" } else { "" };
            let progress = progress.unwrap_or_default();
            let ended = redis.0.connection.end_surely(&state, claim.fence, phase, &progress).await;
            redis.0.releases.remove(&state);
            if let Err(error) = ended {
                tracing::error!(%error, "the claim of a call state was not released: the state cannot be used again");
            }
        });
    }
}
