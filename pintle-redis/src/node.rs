//! The process in its fleet: an inbox, which is a Redis stream that exists while the process does, and the log of changes.

use std::{
    collections::HashMap,
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use pintle::server::{
    http::nodes::{NodeEvent, NodeId, Nodes},
    store::Stored,
};
use tokio::task::AbortHandle;

use crate::{
    Redis,
    connection::{Connection, milliseconds},
    lease,
    message_queue::MessageQueue,
    reader::{CHANGES_AGE, CHANGES_LENGTH, Reader},
};

/// The number of messages in an inbox that are kept in Redis, roughly.
const INBOX_LENGTH: usize = 10_000;

/// The bytes of messages in an inbox. The first message may have more.
const INBOX_BYTES: usize = 64 << 20;

/// Adds a message to an inbox, and its size to the sum. Returns 0 if there is no such inbox, and -1 if it is full.
const SEND: &str = r"
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local held = tonumber(redis.call('GET', KEYS[2]) or '0')
if held > 0 and held + #ARGV[1] > tonumber(ARGV[2]) then return -1 end
redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[3], '*', 'm', ARGV[1])
redis.call('INCRBY', KEYS[2], #ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
return 1";

/// Removes the messages that were read, but for the last, whose place is looked for after a loss, and their size from the sum.
const TRIM: &str = r"
redis.call('XTRIM', KEYS[1], 'MINID', ARGV[1])
if redis.call('XLEN', KEYS[1]) <= 1 then return redis.call('DEL', KEYS[2]) end
return redis.call('DECRBY', KEYS[2], ARGV[2])";

/// Removes a process from those that have a session, unless it has joined them again.
const DROP_HOLDER: &str = "if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end return redis.call('HDEL', KEYS[1], ARGV[1])";

/// A process of a fleet.
pub(crate) struct Node {
    id: NodeId,
    queue: Arc<MessageQueue>,
    tasks: [AbortHandle; 2],
    /// How often the process has joined those that have a session.
    joined: AtomicU64,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl Node {
    /// Joins the fleet.
    pub(crate) async fn start(connection: &Connection) -> io::Result<Self> {
        let id = NodeId::random()
            .ok_or_else(|| io::Error::other("the system's random number generator failed"))?;
        let queue = Arc::new(MessageQueue::default());
        connection.create_inbox(id).await?;
        let reader = Reader::start(connection, id, queue.clone()).await?;
        let receiving = tokio::spawn(reader.run());
        let renewing = tokio::spawn(lease::keep(connection.clone(), id, queue.clone()));
        Ok(Self {
            id,
            queue,
            tasks: [receiving.abort_handle(), renewing.abort_handle()],
            joined: AtomicU64::new(0),
        })
    }

    pub(crate) fn id(&self) -> NodeId {
        self.id
    }

    /// Leaves the fleet.
    async fn close(&self, connection: &Connection) -> io::Result<()> {
        self.tasks.iter().for_each(AbortHandle::abort);
        connection.remove_inbox(self.id).await
    }
}

impl Connection {
    /// Sends a message to a process. Returns `false` if it is gone.
    async fn send_to(&self, node: NodeId, message: &[u8]) -> io::Result<bool> {
        let key = self.keys.inbox(node);
        let value = self.encode(&key, message)?;
        let mut send = redis::cmd("EVAL");
        send.arg(SEND).arg(2).arg(&key).arg(self.keys.inbox_bytes(node)).arg(value);
        send.arg(INBOX_BYTES).arg(INBOX_LENGTH).arg(milliseconds(CHANGES_AGE));
        match self.run::<i64>(&send).await? {
            -1 => Err(io::Error::other("the inbox of another process is full: try again later")),
            sent => Ok(sent == 1),
        }
    }

    /// Removes the messages of an inbox up to one that was read, which have so many bytes.
    pub(crate) async fn trim_inbox(&self, node: NodeId, position: &str, bytes: usize) -> io::Result<()> {
        let mut trim = redis::cmd("EVAL");
        trim.arg(TRIM).arg(2).arg(self.keys.inbox(node)).arg(self.keys.inbox_bytes(node));
        trim.arg(position).arg(bytes);
        self.run::<i64>(&trim).await.map(drop)
    }

    /// Removes a process that is gone from those that have a session. One that has come back meanwhile has joined with another number.
    async fn drop_holder(&self, holders: &str, node: &str, joined: &str) -> io::Result<()> {
        let mut drop_holder = redis::cmd("EVAL");
        drop_holder.arg(DROP_HOLDER).arg(1).arg(holders).arg(node).arg(joined);
        self.run::<i64>(&drop_holder).await.map(drop)
    }
}

impl Nodes for Redis {
    fn id(&self) -> NodeId {
        self.0.node.id
    }

    fn join<'a>(&'a self, session: &'a str, life: Duration) -> Stored<'a, ()> {
        Stored::later(async move {
            let connection = &self.0.connection;
            let key = connection.keys.holders(session);
            let mut commands = redis::pipe();
            let joined = self.0.node.joined.fetch_add(1, Ordering::Relaxed);
            commands.cmd("HSET").arg(&key).arg(self.0.node.id.to_string()).arg(joined).ignore();
            commands.cmd("PEXPIRE").arg(&key).arg(milliseconds(life)).ignore();
            commands.atomic();
            connection.run_again(&commands).await
        })
    }

    fn leave<'a>(&'a self, session: &'a str) -> Stored<'a, ()> {
        Stored::later(async move {
            let connection = &self.0.connection;
            let mut leave = redis::cmd("HDEL");
            leave.arg(connection.keys.holders(session)).arg(self.0.node.id.to_string());
            connection.run::<i64>(&leave).await.map(drop)
        })
    }

    fn send<'a>(&'a self, session: &'a str, message: Bytes) -> Stored<'a, usize> {
        Stored::later(async move {
            let connection = &self.0.connection;
            let key = connection.keys.holders(session);
            let holders: HashMap<String, String> = connection.run(redis::cmd("HGETALL").arg(&key)).await?;
            let mut sent = 0;
            for (holder, joined) in holders {
                match holder.parse() {
                    Ok(node) if node == self.0.node.id => {}
                    Ok(node) if connection.send_to(node, &message).await? => sent += 1,
                    _ => connection.drop_holder(&key, &holder, &joined).await?,
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
            add.arg("n").arg(self.0.node.id.to_string()).arg("c").arg(value);
            commands.cmd("PEXPIRE").arg(&key).arg(milliseconds(CHANGES_AGE)).ignore();
            let (published,): (String,) = connection.run_all(&commands).await?;
            self.0.node.queue.set_published(published);
            Ok(())
        })
    }

    fn close(&self) -> Stored<'_, ()> {
        Stored::later(self.0.node.close(&self.0.connection))
    }

    fn receive(&self) -> Stored<'_, NodeEvent> {
        Stored::later(async move { Ok(self.0.node.queue.next().await) })
    }
}
