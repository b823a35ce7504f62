//! Limits of rates: a hash for each bucket, with what is in it and when that was.

use pintle::server::{RateFuture, RateLease, RateRequest, RateStore};

use crate::{Redis, connection::milliseconds, keys::escaped};

use std::time::Duration;

/// Takes calls out of a bucket. Returns how many, and the milliseconds until there is one more.
const TAKE: &str = r"
local calls, window, spent, wanted = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local known = redis.call('HMGET', KEYS[1], 'l', 'a')
local left = calls
if known[1] then
  local since = math.max(now - tonumber(known[2]), 0)
  left = math.min(tonumber(known[1]) + since * calls / window, calls)
end
left = math.max(left - spent, -calls)
local taken = math.min(math.max(math.floor(left), 0), wanted)
left = left - taken
redis.call('HSET', KEYS[1], 'l', string.format('%.6f', left), 'a', string.format('%.0f', now))
redis.call('PEXPIRE', KEYS[1], math.floor(2 * window) + 1000)
local wait = 0
if left < 1 then wait = math.ceil((1 - left) * window / calls) end
return {taken, wait}";

impl RateStore for Redis {
    fn take<'a>(&'a self, request: &'a RateRequest) -> RateFuture<'a> {
        Box::pin(async move {
            let connection = &self.0.connection;
            let mut take = redis::cmd("EVAL");
            take.arg(TAKE)
                .arg(1)
                .arg(connection.keys.rate(&escaped(&request.bucket)))
                .arg(request.calls.max(1));
            take.arg(milliseconds(request.window)).arg(request.spent).arg(request.wanted);
            let (calls, wait): (u32, u64) = connection.run(&take).await?;
            Ok(RateLease::new(calls, Duration::from_millis(wait)))
        })
    }
}
