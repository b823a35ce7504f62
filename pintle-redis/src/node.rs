//! The process in its fleet: an inbox, which is a Redis stream that exists while the process does, and the log of changes.

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use pintle::server::http::{
    log::Stored,
    nodes::{NodeEvent, NodeId, Nodes},
};
use redis::{Value, aio::MultiplexedConnection};
use tokio::{sync::Notify, task::AbortHandle, time::sleep};

use crate::{
    Redis,
    connection::{Connection, failed, milliseconds},
};

/// The number of messages in an inbox, and of changes, that are kept in Redis, roughly.
const INBOX_LENGTH: usize = 10_000;
const CHANGES_LENGTH: usize = 50_000;

/// The number of messages that are received and not handled. Above it, they are replaced by a gap.
const QUEUE_LENGTH: usize = 10_000;

/// The time after which the log of changes expires if there is no process any more.
const CHANGES_AGE: Duration = Duration::from_secs(24 * 3600);

/// The time that a read waits for messages.
const BLOCK: Duration = Duration::from_secs(2);

/// The time after which a connection that failed is opened again.
const RETRY: Duration = Duration::from_millis(500);

/// Removes a process from those that have a session, unless its inbox is there.
const DROP_HOLDER: &str =
    "if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end return redis.call('SREM', KEYS[1], ARGV[1])";

/// A process of a fleet.
pub(crate) struct Node {
    id: NodeId,
    queue: Arc<MessageQueue>,
    tasks: [AbortHandle; 2],
}

impl Drop for Node {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

/// The messages that were received.
#[derive(Default)]
struct MessageQueue {
    messages: Mutex<VecDeque<NodeEvent>>,
    added: Notify,
    /// The last entry of the inbox that was read.
    position: Mutex<String>,
}

impl MessageQueue {
    fn push(&self, received: NodeEvent) {
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        if messages.len() >= QUEUE_LENGTH {
            messages.clear();
            messages.push_back(NodeEvent::Gap);
        }
        messages.push_back(received);
        drop(messages);
        self.added.notify_one();
    }

    fn pop(&self) -> Option<NodeEvent> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    fn position(&self) -> String {
        self.position.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_position(&self, position: &str) {
        position.clone_into(&mut self.position.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Node {
    /// Joins the fleet.
    pub(crate) async fn start(connection: &Connection) -> io::Result<Self> {
        let id = NodeId::random().ok_or_else(|| io::Error::other("the system has no random numbers"))?;
        let queue = Arc::new(MessageQueue::default());
        queue.set_position("0-0");
        connection.create_inbox(id).await?;
        let reader = Reader {
            connection: connection.clone(),
            id,
            changes: connection.newest_change().await?,
            queue: queue.clone(),
        };
        let receiving = tokio::spawn(reader.run());
        let renewing = tokio::spawn(renew(connection.clone(), id, queue.clone()));
        Ok(Self { id, queue, tasks: [receiving.abort_handle(), renewing.abort_handle()] })
    }

    pub(crate) fn id(&self) -> NodeId {
        self.id
    }
}

impl Connection {
    /// Creates the inbox of a process.
    async fn create_inbox(&self, id: NodeId) -> io::Result<()> {
        let key = self.keys.inbox(id);
        let mut commands = redis::pipe();
        commands.atomic();
        commands.cmd("XADD").arg(&key).arg("*").arg("o").arg("").ignore();
        commands.cmd("PEXPIRE").arg(&key).arg(milliseconds(self.options.lease)).ignore();
        self.run_all(&commands).await
    }

    /// Returns the id of the newest change.
    async fn newest_change(&self) -> io::Result<String> {
        let mut newest = redis::cmd("XREVRANGE");
        newest.arg(self.keys.changes()).arg("+").arg("-").arg("COUNT").arg(1);
        let newest: Value = self.run(&newest).await?;
        let Value::Array(entries) = newest else { return Ok("0-0".to_owned()) };
        let newest = entries.into_iter().next().and_then(fields);
        Ok(newest.map_or_else(|| "0-0".to_owned(), |(id, _)| id))
    }

    /// Returns whether changes after this one were dropped.
    async fn has_lost_changes(&self, position: &str) -> io::Result<bool> {
        if position == "0-0" {
            return Ok(false);
        }
        let key = self.keys.changes();
        let mut commands = redis::pipe();
        commands.cmd("XRANGE").arg(&key).arg(position).arg(position);
        commands.cmd("XLEN").arg(&key);
        let (found, length): (Value, usize) = self.run_all(&commands).await?;
        let is_there = matches!(found, Value::Array(entries) if !entries.is_empty());
        // An empty log was lost, or has expired.
        Ok(!is_there || length == 0)
    }

    /// Sends a message to a process. Returns `false` if it is gone.
    async fn send_to(&self, node: NodeId, message: &[u8]) -> io::Result<bool> {
        let key = self.keys.inbox(node);
        let value = self.encode(&key, message)?;
        let mut send = redis::cmd("XADD");
        send.arg(&key)
            .arg("NOMKSTREAM")
            .arg("MAXLEN")
            .arg("~")
            .arg(INBOX_LENGTH)
            .arg("*")
            .arg("m")
            .arg(value);
        let sent: Option<String> = self.run(&send).await?;
        Ok(sent.is_some())
    }

    /// Removes a process that is gone from those that have a session. One that has come back meanwhile stays.
    async fn drop_holder(&self, holders: &str, node: &str) -> io::Result<()> {
        let inbox = node.parse().map(|node| self.keys.inbox(node)).unwrap_or_default();
        let mut drop_holder = redis::cmd("EVAL");
        drop_holder.arg(DROP_HOLDER).arg(2).arg(holders).arg(inbox).arg(node);
        self.run::<i64>(&drop_holder).await.map(drop)
    }

    /// Returns whether a process is there.
    pub(crate) async fn is_alive(&self, node: &str) -> io::Result<bool> {
        let Ok(node) = node.parse() else { return Ok(false) };
        self.run(redis::cmd("EXISTS").arg(self.keys.inbox(node))).await
    }
}

/// Keeps the inbox of a process, and the log of changes, alive.
async fn renew(connection: Connection, id: NodeId, queue: Arc<MessageQueue>) {
    let lease = connection.options.lease;
    loop {
        sleep(lease / 3).await;
        let key = connection.keys.inbox(id);
        let mut commands = redis::pipe();
        commands.cmd("PEXPIRE").arg(&key).arg(milliseconds(lease));
        commands.cmd("XTRIM").arg(&key).arg("MINID").arg("~").arg(queue.position()).ignore();
        commands.cmd("PEXPIRE").arg(connection.keys.changes()).arg(milliseconds(CHANGES_AGE)).ignore();
        match connection.run_all::<(bool,)>(&commands).await {
            Ok((true,)) => {}
            // The others have found that this process was gone.
            Ok((false,)) => match connection.create_inbox(id).await {
                Ok(()) => queue.push(NodeEvent::Gap),
                Err(error) => tracing::warn!(%error, "the inbox of this process could not be created"),
            },
            Err(error) => tracing::warn!(%error, "the inbox of this process could not be renewed"),
        }
    }
}

/// Reads the inbox of a process and the log of changes.
struct Reader {
    connection: Connection,
    id: NodeId,
    /// The last change that was read.
    changes: String,
    queue: Arc<MessageQueue>,
}

impl Reader {
    async fn run(mut self) {
        loop {
            let read = match self.connection.blocking(BLOCK).await {
                Ok(mut connection) => self.read_all(&mut connection).await,
                Err(error) => Err(error),
            };
            if let Err(error) = read {
                tracing::warn!(%error, "messages of other processes cannot be read: it is tried again");
            }
            sleep(RETRY).await;
            match self.connection.has_lost_changes(&self.changes).await {
                Ok(true) => {
                    self.changes = self.connection.newest_change().await.unwrap_or_else(|_| "0-0".to_owned());
                    // After the position is known, or a change in between would be neither in the gap nor read.
                    self.queue.push(NodeEvent::Gap);
                }
                Ok(false) => {}
                Err(error) => tracing::debug!(%error, "it is not known whether changes were lost"),
            }
        }
    }

    async fn read_all(&mut self, connection: &mut MultiplexedConnection) -> io::Result<()> {
        let (inbox, changes) = (self.connection.keys.inbox(self.id), self.connection.keys.changes());
        loop {
            let mut read = redis::cmd("XREAD");
            read.arg("COUNT").arg(100).arg("BLOCK").arg(milliseconds(BLOCK)).arg("STREAMS");
            read.arg(&inbox).arg(&changes).arg(self.queue.position()).arg(&self.changes);
            let streams: Value = read.query_async(connection).await.map_err(failed)?;
            for (stream, entries) in streams_of(streams) {
                for (id, fields) in entries.into_iter().filter_map(fields) {
                    if stream == changes.as_bytes() {
                        self.changes = id;
                        self.receive_change(&changes, &fields);
                    } else {
                        self.queue.set_position(&id);
                        self.receive_message(&inbox, &fields);
                    }
                }
            }
        }
    }

    fn receive_message(&self, key: &str, fields: &[Vec<u8>]) {
        let [name, value] = fields else { return };
        if name == b"m" {
            match self.connection.decode(key, value) {
                Ok(message) => self.queue.push(NodeEvent::Message(message.into())),
                Err(error) => tracing::warn!(%error, "a message of another process was refused"),
            }
        }
    }

    fn receive_change(&self, key: &str, fields: &[Vec<u8>]) {
        let [_, node, _, value] = fields else { return };
        if node != self.id.to_string().as_bytes() {
            match self.connection.decode(key, value) {
                Ok(change) => self.queue.push(NodeEvent::Change(change.into())),
                Err(error) => tracing::warn!(%error, "a change of another process was refused"),
            }
        }
    }
}

/// Returns the streams of an `XREAD`, with their entries.
fn streams_of(value: Value) -> Vec<(Vec<u8>, Vec<Value>)> {
    match value {
        Value::Array(streams) => {
            streams.into_iter().filter_map(|stream| redis::from_redis_value(stream).ok()).collect()
        }
        Value::Map(streams) => {
            let streams = streams.into_iter().filter_map(|(name, entries)| {
                Some((redis::from_redis_value(name).ok()?, redis::from_redis_value(entries).ok()?))
            });
            streams.collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the id of an entry, and its fields.
fn fields(entry: Value) -> Option<(String, Vec<Vec<u8>>)> {
    redis::from_redis_value(entry).ok()
}

impl Nodes for Redis {
    fn id(&self) -> NodeId {
        self.0.node.id
    }

    fn join<'a>(&'a self, session: &'a str, idle: Duration) -> Stored<'a, ()> {
        Stored::later(async move {
            let connection = &self.0.connection;
            let key = connection.keys.holders(session);
            let mut commands = redis::pipe();
            commands.cmd("SADD").arg(&key).arg(self.0.node.id.to_string()).ignore();
            commands.cmd("PEXPIRE").arg(&key).arg(milliseconds(idle)).ignore();
            commands.atomic();
            connection.run_again(&commands).await
        })
    }

    fn leave<'a>(&'a self, session: &'a str) -> Stored<'a, ()> {
        Stored::later(async move {
            let connection = &self.0.connection;
            let mut leave = redis::cmd("SREM");
            leave.arg(connection.keys.holders(session)).arg(self.0.node.id.to_string());
            connection.run::<i64>(&leave).await.map(drop)
        })
    }

    fn send<'a>(&'a self, session: &'a str, message: Bytes) -> Stored<'a, usize> {
        Stored::later(async move {
            let connection = &self.0.connection;
            let key = connection.keys.holders(session);
            let holders: Vec<String> = connection.run(redis::cmd("SMEMBERS").arg(&key)).await?;
            let mut sent = 0;
            for holder in holders {
                match holder.parse() {
                    Ok(node) if node == self.0.node.id => {}
                    Ok(node) if connection.send_to(node, &message).await? => sent += 1,
                    _ => connection.drop_holder(&key, &holder).await?,
                }
            }
            Ok(sent)
        })
    }

    fn send_to<'a>(&'a self, node: NodeId, message: Bytes) -> Stored<'a, bool> {
        Stored::later(async move { self.0.connection.send_to(node, &message).await })
    }

    fn publish<'a>(&'a self, change: Bytes) -> Stored<'a, ()> {
        Stored::later(async move {
            let connection = &self.0.connection;
            let key = connection.keys.changes();
            let value = connection.encode(&key, &change)?;
            let mut commands = redis::pipe();
            let add = commands.cmd("XADD").arg(&key).arg("MAXLEN").arg("~").arg(CHANGES_LENGTH).arg("*");
            add.arg("n").arg(self.0.node.id.to_string()).arg("c").arg(value).ignore();
            commands.cmd("PEXPIRE").arg(&key).arg(milliseconds(CHANGES_AGE)).ignore();
            connection.run_all(&commands).await
        })
    }

    fn receive(&self) -> Stored<'_, NodeEvent> {
        Stored::later(async move {
            let queue = &self.0.node.queue;
            loop {
                // Created before looking, or a notification in between would be missed.
                let added = queue.added.notified();
                if let Some(received) = queue.pop() {
                    return Ok(received);
                }
                added.await;
            }
        })
    }
}
