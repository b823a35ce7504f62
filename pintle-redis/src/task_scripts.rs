//! The scripts of the task store.
//!
//! Everything about tasks is in a few keys with one hash tag:
//!
//! | key | what |
//! |---|---|
//! | `meta` | a hash: the id, and the lines of [`MetaLine`](crate::task_store) |
//! | `body` | a hash: the id, and the sealed body |
//! | `expiry` | a sorted set: the ids by expiry |
//! | `owner`, `held`, `unread` | sorted sets of `name:id`: the tasks of an owner, of a process, and those that a process has to read |
//! | `usage` | a hash: the tasks and the bytes of each account, and of all (`*`) |
//! | `lease` | a sorted set: the processes by the end of their lease |
//!
//! They expire a day after the last task.

/// Splits the meta lines of a task, and removes a task with all that is known of it. Part of the scripts that need it.
macro_rules! with_tasks {
    ($script:literal) => {
        concat!(
            r"
local function lines(text)
  local found = {}
  for line in string.gmatch(text .. '\n', '(.-)\n') do found[#found + 1] = line end
  return found
end
local function charge(account, tasks, bytes)
  for _, name in ipairs({account, '*'}) do
    local left = redis.call('HINCRBY', KEYS[7], name .. ':t', tasks)
    redis.call('HINCRBY', KEYS[7], name .. ':b', bytes)
    if left <= 0 then redis.call('HDEL', KEYS[7], name .. ':t', name .. ':b') end
  end
end
local function keep(life)
  for _, key in ipairs(KEYS) do
    local left = redis.call('PTTL', key)
    if left ~= -2 and left < life then redis.call('PEXPIRE', key, string.format('%.0f', life)) end
  end
end
",
            $script
        )
    };
}

/// Creates or updates a task. Returns a number and a text: 0 stored, 1 refused for the version that is there, 2 refused for its size, 3 the
/// task has the format of the text.
///
/// The same write may arrive twice, if the connection was lost: the second one changes nothing.
pub(crate) const WRITE: &str = with_tasks!(
    r"
local id, before, version, nonce = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local expires, bytes, unread = ARGV[5], tonumber(ARGV[6]), ARGV[7]
local account, owner, holder, body = ARGV[8], ARGV[9], ARGV[10], ARGV[11]
local found = redis.call('HGET', KEYS[1], id)
local old = found and lines(found)
if old then
  if tonumber(old[1]) > 1 then return {3, old[1]} end
  if old[2] == version and old[3] == nonce then return {0, ''} end
  if old[2] ~= before then return {1, ''} end
  account = old[7]
elseif before ~= '' then
  return {1, ''}
end
local more = bytes - (old and tonumber(old[5]) or 0)
local added = old and 0 or 1
if more > 0 then
  local function full(name, tasks, limit)
    return (tonumber(redis.call('HGET', KEYS[7], name .. ':t')) or 0) + added > tonumber(tasks)
      or (tonumber(redis.call('HGET', KEYS[7], name .. ':b')) or 0) + more > tonumber(limit)
  end
  if bytes > tonumber(ARGV[12]) or full(account, ARGV[13], ARGV[14]) or full('*', ARGV[15], ARGV[16]) then
    return {2, ''}
  end
end
redis.call('HSET', KEYS[1], id,
  table.concat({'1', version, nonce, expires, ARGV[6], unread, account, owner, holder}, '\n'))
redis.call('HSET', KEYS[2], id, body)
redis.call('ZADD', KEYS[3], expires, id)
redis.call('ZADD', KEYS[4], 0, owner .. ':' .. id)
if old and old[9] ~= '-' then
  redis.call('ZREM', KEYS[5], old[9] .. ':' .. id)
  redis.call('ZREM', KEYS[6], old[9] .. ':' .. id)
end
if holder ~= '-' then
  redis.call('ZADD', KEYS[5], 0, holder .. ':' .. id)
  if unread == '1' then redis.call('ZADD', KEYS[6], 0, holder .. ':' .. id) end
end
charge(account, added, string.format('%.0f', more))
local now = tonumber(redis.call('TIME')[1]) * 1000
keep(math.min(math.max(tonumber(expires) - now, 0) + tonumber(ARGV[17]), 3e12))
return {0, ''}"
);

/// Removes tasks that have expired, at most as many as the second argument says. Returns the next expiry, or an empty text.
pub(crate) const REMOVE_EXPIRED: &str = with_tasks!(
    r"
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])) do
  local found = redis.call('HGET', KEYS[1], id)
  if found then
    local task = lines(found)
    redis.call('ZREM', KEYS[4], task[8] .. ':' .. id)
    redis.call('ZREM', KEYS[5], task[9] .. ':' .. id)
    redis.call('ZREM', KEYS[6], task[9] .. ':' .. id)
    charge(task[7], -1, '-' .. task[5])
  end
  redis.call('HDEL', KEYS[1], id)
  redis.call('HDEL', KEYS[2], id)
  redis.call('ZREM', KEYS[3], id)
end
local next = redis.call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')
if not next[2] then return '' end
return string.format('%.0f', tonumber(next[2]))"
);

/// Returns the `name:id` of tasks whose process has no lease, from any of them on: those that nobody can open hide no others. Processes
/// are visited one after the other, and not their tasks.
pub(crate) const ORPHANS: &str = r"
local found, limit = {}, tonumber(ARGV[2])
local total = redis.call('ZCARD', KEYS[1])
if total == 0 then return found end
local at = tonumber(string.sub(ARGV[3], 1, 8), 16) % total
local start = redis.call('ZRANGE', KEYS[1], at, at)[1]
local function visit(from, to)
  while #found < limit do
    local first = redis.call('ZRANGEBYLEX', KEYS[1], from, to, 'LIMIT', 0, 1)[1]
    if not first then return end
    local holder = string.match(first, '^[^:]*')
    local past = '(' .. holder .. ';'
    local lease = redis.call('ZSCORE', KEYS[2], holder)
    if not lease or tonumber(lease) <= tonumber(ARGV[1]) then
      local last = past
      if to ~= '+' and string.match(start, '^[^:]*') == holder then last = to end
      local held = redis.call('ZRANGEBYLEX', KEYS[1], '[' .. first, last, 'LIMIT', 0, limit - #found)
      for _, name in ipairs(held) do found[#found + 1] = name end
    end
    from = past
  end
end
visit('[' .. start, '+')
visit('-', '(' .. start)
return found";
