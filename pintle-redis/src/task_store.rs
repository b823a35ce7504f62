//! Tasks. The scripts say which keys there are.

use std::{fmt, io, time::Duration};

use pintle::server::http::nodes::NodeId;
use pintle_tasks::{StoredTask, TaskFuture, TaskQuota, TaskStore, Updated};
use redis::{FromRedisValue, Pipeline};

use crate::{
    connection::{Connection, milliseconds},
    keys::{escaped, unescaped},
    task_scripts::{ORPHANS, REMOVE_EXPIRED, WRITE},
};

/// The time that tasks stay in Redis after their expiry if no process removes them.
const MARGIN: Duration = Duration::from_secs(24 * 3600);

/// The number of tasks that are removed by one command.
const REMOVED_AT_ONCE: usize = 500;

/// The longest id that is looked up. Those of tasks are shorter.
const MAX_ID: usize = 512;

/// The newest format of the lines of a task that is read.
const FORMAT: u32 = 1;

/// The tasks of a fleet in Redis: see [`Redis::tasks`](crate::Redis::tasks).
///
/// A task is created in one process, and polled, answered and cancelled in any. Times are those of Redis, so the clocks of processes may
/// differ. Every change is one command, which changes nothing if the connection is lost and it arrives twice.
#[derive(Clone)]
pub struct RedisTaskStore {
    connection: Connection,
}

/// The keys in the order of the scripts.
const KEYS: [&str; 7] = ["meta", "body", "expiry", "owner", "held", "unread", "usage"];

/// The lines of a task, beside its body: the format, the version, the number of the write, the expiry, the bytes, whether it is unread, the
/// account, the owner, and the holder. A later format may have more.
type MetaLine<'a> = std::str::Split<'a, char>;

impl RedisTaskStore {
    pub(crate) fn new(connection: Connection) -> Self {
        Self { connection }
    }

    fn key(&self, name: &str) -> String {
        self.connection.keys.tasks(name)
    }

    /// Adds a script with the keys of all tasks.
    fn script<'a>(&self, commands: &'a mut Pipeline, script: &str) -> &'a mut Pipeline {
        commands.cmd("EVAL").arg(script).arg(KEYS.len());
        for key in KEYS {
            commands.arg(self.key(key));
        }
        commands
    }

    async fn one<T: FromRedisValue>(&self, commands: &Pipeline) -> io::Result<T> {
        self.connection.run_again::<(T,)>(commands).await.map(|(done,)| done)
    }

    /// Stores a task. The version that it replaces is that before its own, unless it is new.
    async fn write(
        &self,
        task: &StoredTask,
        before: Option<u64>,
        quota: &TaskQuota,
    ) -> io::Result<WriteOutcome> {
        // Random, so that a write that arrives twice is known.
        let nonce = NodeId::random()
            .ok_or_else(|| io::Error::other("the system's random number generator failed"))?;
        let mut commands = redis::pipe();
        let write = self.script(&mut commands, WRITE);
        write.arg(&task.id).arg(before.map(|version| version.to_string()).unwrap_or_default());
        write.arg(task.version).arg(nonce.to_string()).arg(task.expires).arg(task.bytes());
        write.arg(u8::from(task.unread)).arg(escaped(&task.account)).arg(escaped(&task.owner));
        write.arg(task.holder.as_deref().map_or_else(|| "-".to_owned(), holder_name)).arg(&task.body);
        write.arg(quota.task_bytes).arg(quota.account_tasks).arg(quota.account_bytes);
        write.arg(quota.tasks).arg(quota.bytes).arg(milliseconds(MARGIN));
        let (outcome, format): (i64, String) = self.one(&commands).await?;
        match outcome {
            0 => Ok(WriteOutcome::Stored),
            1 => Ok(WriteOutcome::Outdated),
            2 => Ok(WriteOutcome::Full),
            _ => Err(unknown_format(&format)),
        }
    }

    /// Returns the tasks of these ids that are there.
    async fn read(&self, ids: Vec<String>) -> io::Result<Vec<StoredTask>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut commands = redis::pipe();
        commands.atomic();
        commands.cmd("HMGET").arg(self.key("meta")).arg(&ids);
        commands.cmd("HMGET").arg(self.key("body")).arg(&ids);
        type Found = (Vec<Option<String>>, Vec<Option<Vec<u8>>>);
        let (metas, bodies): Found = self.connection.run_again(&commands).await?;
        let found = ids.into_iter().zip(metas).zip(bodies);
        found.filter_map(|((id, meta), body)| Some(parse(id, &meta?, body?))).collect::<io::Result<Vec<_>>>()
    }

    /// Returns the second parts of at most `limit` names with this first part.
    async fn named(&self, key: &str, name: &str, after: &str, limit: usize) -> io::Result<Vec<String>> {
        let mut commands = redis::pipe();
        let from = if after.is_empty() { format!("[{name}:") } else { format!("({name}:{after}") };
        commands.cmd("ZRANGEBYLEX").arg(self.key(key)).arg(from).arg(format!("({name};"));
        commands.arg("LIMIT").arg(0).arg(limit);
        let names: Vec<String> = self.one(&commands).await?;
        Ok(names.into_iter().filter_map(|name| name.split_once(':').map(|(_, id)| id.to_owned())).collect())
    }
}

/// The result of a write.
enum WriteOutcome {
    Stored,
    Outdated,
    Full,
}

/// Returns the name of a holder, which is never that of none.
fn holder_name(holder: &str) -> String {
    format!("h{}", escaped(holder))
}

fn unknown_format(format: &str) -> io::Error {
    let reason = format!(
        "a task in Redis has format {format}, and this version reads formats up to {FORMAT}: update this process"
    );
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

/// Returns a task from its lines and its body.
fn parse(id: String, meta: &str, body: Vec<u8>) -> io::Result<StoredTask> {
    let mut lines: MetaLine<'_> = meta.split('\n');
    let malformed = || io::Error::new(io::ErrorKind::InvalidData, "a task in Redis is malformed");
    let format = lines.next().unwrap_or_default();
    if format.parse::<u32>().map_err(|_| malformed())? > FORMAT {
        return Err(unknown_format(format));
    }
    let fields: Vec<&str> = lines.collect();
    let [version, _, expires, _, unread, account, owner, holder, ..] = fields[..] else {
        return Err(malformed());
    };
    let number = |text: &str| text.parse::<u64>().map_err(|_| malformed());
    let name = |text: &str| unescaped(text).ok_or_else(malformed);
    let mut task = StoredTask::new(id, name(owner)?, number(expires)?, body);
    task.account = name(account)?;
    task.version = number(version)?;
    task.unread = unread == "1";
    task.holder = holder.strip_prefix('h').map(name).transpose()?;
    Ok(task)
}

impl TaskStore for RedisTaskStore {
    fn create<'a>(&'a self, task: &'a StoredTask, quota: &'a TaskQuota) -> TaskFuture<'a, bool> {
        Box::pin(async move { Ok(matches!(self.write(task, None, quota).await?, WriteOutcome::Stored)) })
    }

    fn update<'a>(&'a self, task: &'a StoredTask, quota: &'a TaskQuota) -> TaskFuture<'a, Updated> {
        Box::pin(async move {
            let Some(before) = task.version.checked_sub(1) else { return Ok(Updated::Outdated) };
            Ok(match self.write(task, Some(before), quota).await? {
                WriteOutcome::Stored => Updated::Stored,
                WriteOutcome::Outdated => Updated::Outdated,
                WriteOutcome::Full => Updated::Full,
            })
        })
    }

    fn get<'a>(&'a self, id: &'a str) -> TaskFuture<'a, Option<StoredTask>> {
        Box::pin(async move {
            if id.len() > MAX_ID {
                return Ok(None);
            }
            Ok(self.read(vec![id.to_owned()]).await?.pop())
        })
    }

    fn list<'a>(
        &'a self,
        owner: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> TaskFuture<'a, Vec<StoredTask>> {
        Box::pin(async move {
            let after = after.unwrap_or_default();
            if after.len() > MAX_ID {
                return Ok(Vec::new());
            }
            let ids = self.named("owner", &escaped(owner), after, limit).await?;
            self.read(ids).await
        })
    }

    fn remove_expired(&self, now: u64) -> TaskFuture<'_, Option<u64>> {
        Box::pin(async move {
            let mut commands = redis::pipe();
            self.script(&mut commands, REMOVE_EXPIRED).arg(now).arg(REMOVED_AT_ONCE);
            let next: String = self.one(&commands).await?;
            Ok(next.parse().ok())
        })
    }

    fn renew<'a>(&'a self, holder: &'a str, until: u64) -> TaskFuture<'a, ()> {
        Box::pin(async move {
            let (key, margin) = (self.key("lease"), milliseconds(MARGIN));
            let mut commands = redis::pipe();
            commands.atomic();
            commands.cmd("ZADD").arg(&key).arg(until).arg(holder_name(holder)).ignore();
            // One without a lease and one whose lease is over are the same.
            let forgotten = until.saturating_sub(margin);
            commands.cmd("ZREMRANGEBYSCORE").arg(&key).arg("-inf").arg(format!("({forgotten}")).ignore();
            commands.cmd("PEXPIRE").arg(&key).arg(margin).ignore();
            self.connection.run_again(&commands).await
        })
    }

    fn orphans(&self, now: u64, limit: usize) -> TaskFuture<'_, Vec<StoredTask>> {
        Box::pin(async move {
            let mut commands = redis::pipe();
            commands.cmd("EVAL").arg(ORPHANS).arg(2).arg(self.key("held")).arg(self.key("lease"));
            let start = NodeId::random()
                .ok_or_else(|| io::Error::other("the system's random number generator failed"))?;
            commands.arg(now).arg(limit).arg(start.to_string());
            let names: Vec<String> = self.one(&commands).await?;
            let held: Vec<_> = names.iter().filter_map(|name| name.split_once(':')).collect();
            let found = self.read(held.iter().map(|(_, id)| (*id).to_owned()).collect()).await?;
            // Another process may have taken it meanwhile.
            let is_held = |task: &StoredTask| {
                let holder = task.holder.as_deref().map(holder_name).unwrap_or_default();
                held.contains(&(&holder, &task.id))
            };
            Ok(found.into_iter().filter(is_held).collect())
        })
    }

    fn unread<'a>(&'a self, holder: &'a str, limit: usize) -> TaskFuture<'a, Vec<String>> {
        Box::pin(async move { self.named("unread", &holder_name(holder), "", limit).await })
    }

    fn now(&self) -> TaskFuture<'_, Option<u64>> {
        Box::pin(async move {
            // A script with a key, so that it is the clock of the Redis that has the tasks.
            let mut time = redis::cmd("EVAL");
            time.arg("return redis.call('TIME')").arg(1).arg(self.key("meta"));
            let (seconds, micros): (u64, u64) = self.connection.run(&time).await?;
            Ok(Some(seconds.saturating_mul(1000).saturating_add(micros / 1000)))
        })
    }
}

impl fmt::Debug for RedisTaskStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisTaskStore")
            .field("prefix", &self.connection.options.prefix)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_version_may_add_lines_and_a_later_format_is_refused_by_its_number() {
        let task =
            parse("id".to_owned(), "1\n3\nff\n1500\n260\n1\nann\nname%3aann\nhproc\nmore", vec![7]).unwrap();
        assert_eq!((task.version, task.expires, task.unread), (3, 1500, true));
        assert_eq!((&*task.owner, &*task.account, task.holder.as_deref()), ("name:ann", "ann", Some("proc")));
        let newer = parse("id".to_owned(), "2\nanything", Vec::new()).unwrap_err();
        assert!(newer.to_string().contains("has format 2"), "{newer}");
        for malformed in ["", "x", "1", "1\n3\nff\n1500\n260\n1\nann\nann", "1\nx\nff\n1\n1\n1\nann\nann\n-"]
        {
            parse("id".to_owned(), malformed, Vec::new()).unwrap_err();
        }
    }
}
