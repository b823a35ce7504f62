//! Reads the inbox of a process and the log of changes, and finds what was lost.

use std::{io, sync::Arc, time::Duration};

use pintle::server::http::nodes::{NodeEvent, NodeId};
use redis::Value;
use tokio::time::sleep;

use crate::{
    backend::{BlockingConnection, failed},
    connection::{Connection, milliseconds},
    message_queue::{MessageQueue, START},
};

/// The number of changes that are kept in Redis, roughly.
pub(crate) const CHANGES_LENGTH: usize = 50_000;

/// The time after which the log of changes expires if there is no process any more.
pub(crate) const CHANGES_AGE: Duration = Duration::from_secs(24 * 3600);

/// The number of messages that are read at once. They may be long.
const READ: usize = 16;

/// The time that a read waits for messages.
const BLOCK: Duration = Duration::from_secs(2);

/// The time after which a connection that failed is opened again.
const RETRY: Duration = Duration::from_millis(500);

/// Reads the inbox of a process and the log of changes.
pub(crate) struct Reader {
    connection: Connection,
    id: NodeId,
    /// The random number that the first process has written to this Redis. A Redis without its data has another one, or none.
    epoch: String,
    /// The last change that was read.
    changes: String,
    queue: Arc<MessageQueue>,
}

/// The entries that are found in Redis, of those that were read or written last.
struct FoundPositions {
    epoch: String,
    newest_change: Option<String>,
    has_change: bool,
    has_published: bool,
    newest_message: Option<String>,
    has_message: bool,
}

impl Reader {
    /// Creates a reader of what is sent from now on. The process has an inbox.
    pub(crate) async fn start(
        connection: &Connection,
        id: NodeId,
        queue: Arc<MessageQueue>,
    ) -> io::Result<Self> {
        let connection = connection.clone();
        let mut reader = Self { connection, id, epoch: String::new(), changes: START.to_owned(), queue };
        let mut own = reader.connection.blocking(BLOCK).await?;
        let found = reader.find_positions(&mut own).await?;
        reader.epoch = found.epoch;
        reader.changes = found.newest_change.unwrap_or_else(|| START.to_owned());
        Ok(reader)
    }

    pub(crate) async fn run(mut self) {
        loop {
            if let Err(error) = self.read_all().await {
                tracing::warn!(%error, "messages of other processes cannot be read: it is tried again");
            }
            sleep(RETRY).await;
        }
    }

    async fn read_all(&mut self) -> io::Result<()> {
        let mut connection = self.connection.blocking(BLOCK).await?;
        // With each connection, because it may be to a Redis that was restarted or has taken over.
        self.find_losses(&mut connection).await?;
        let (inbox, changes) = (self.connection.keys.inbox(self.id), self.connection.keys.changes());
        loop {
            let mut read = redis::cmd("XREAD");
            read.arg("COUNT").arg(READ).arg("BLOCK").arg(milliseconds(BLOCK)).arg("STREAMS");
            read.arg(&inbox).arg(&changes).arg(self.queue.position()).arg(&self.changes);
            // What is not handled yet stays in Redis, where the inbox has a limit.
            self.queue.wait_for_room().await;
            let streams: Value = read.query_async(&mut connection).await.map_err(failed)?;
            let mut received = 0;
            for (stream, entries) in streams_of(streams) {
                for (id, fields) in entries.into_iter().filter_map(fields) {
                    if stream == changes.as_bytes() {
                        self.changes = id;
                        self.receive_change(&changes, &fields);
                    } else {
                        self.queue.set_position(&id);
                        received += fields.iter().skip(1).map(Vec::len).sum::<usize>();
                        self.receive_message(&inbox, &fields);
                    }
                }
            }
            if received > 0 {
                self.connection.trim_inbox(self.id, &self.queue.position(), received).await?;
            }
        }
    }

    async fn find_positions(&self, connection: &mut BlockingConnection) -> io::Result<FoundPositions> {
        let keys = &self.connection.keys;
        let (epoch, changes, inbox) = (keys.epoch(), keys.changes(), keys.inbox(self.id));
        let number = NodeId::random()
            .ok_or_else(|| io::Error::other("the system's random number generator failed"))?;
        let (message, published) = (self.queue.position(), self.queue.published());
        let mut commands = redis::pipe();
        let set = commands.cmd("SET").arg(&epoch).arg(number.to_string());
        set.arg("NX").arg("PX").arg(milliseconds(CHANGES_AGE)).ignore();
        commands.cmd("GET").arg(&epoch);
        for (key, position) in [(&changes, &self.changes), (&changes, &published), (&inbox, &message)] {
            commands.cmd("XRANGE").arg(key).arg(position).arg(position);
        }
        for key in [&changes, &inbox] {
            commands.cmd("XREVRANGE").arg(key).arg("+").arg("-").arg("COUNT").arg(1);
        }
        let (epoch, change, own, inbox_entry, newest_change, newest_message): (
            String,
            Value,
            Value,
            Value,
            Value,
            Value,
        ) = commands.query_async(connection).await.map_err(failed)?;
        Ok(FoundPositions {
            epoch,
            newest_change: first_id(newest_change),
            has_change: self.changes == START || first_id(change).is_some(),
            has_published: is_at_or_before(&published, &self.changes) || first_id(own).is_some(),
            newest_message: first_id(newest_message),
            has_message: message == START || first_id(inbox_entry).is_some(),
        })
    }

    /// Finds whether Redis has lost messages or changes, and goes on from what it has.
    async fn find_losses(&mut self, connection: &mut BlockingConnection) -> io::Result<()> {
        let found = self.find_positions(connection).await?;
        if found.epoch != self.epoch {
            // All that is there is newer than what was read.
            self.queue.set_position(START);
            self.queue.set_published(START.to_owned());
            START.clone_into(&mut self.changes);
            self.epoch = found.epoch;
            self.queue.push(NodeEvent::Gap);
            return Ok(());
        }
        if !found.has_change || !found.has_published {
            // Others may not have read what was lost, so they are told.
            let mut lost = redis::pipe();
            let key = self.connection.keys.changes();
            lost.cmd("XADD").arg(&key).arg("MAXLEN").arg("~").arg(CHANGES_LENGTH).arg("*");
            lost.arg("l").arg(self.id.to_string()).ignore();
            lost.cmd("PEXPIRE").arg(&key).arg(milliseconds(CHANGES_AGE)).ignore();
            lost.query_async::<()>(connection).await.map_err(failed)?;
            self.queue.set_published(START.to_owned());
            self.changes = found.newest_change.unwrap_or_else(|| START.to_owned());
            self.queue.push(NodeEvent::MissedChanges);
        }
        // Without any inbox, the lease has ended: its next renewal finds that.
        if let Some(newest) = found.newest_message.filter(|_| !found.has_message) {
            self.queue.set_position(&newest);
            self.queue.push(NodeEvent::Gap);
        }
        Ok(())
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
        let own = self.id.to_string();
        match fields {
            [_, node, _, value] if node != own.as_bytes() => match self.connection.decode(key, value) {
                Ok(change) => self.queue.push(NodeEvent::Change(change.into())),
                Err(error) => tracing::warn!(%error, "a change of another process was refused"),
            },
            [kind, node] if kind == b"g" => {
                let gone = std::str::from_utf8(node).ok().and_then(|node| node.parse().ok());
                // A process that has come back itself has found a gap.
                if let Some(gone) = gone.filter(|gone| *gone != self.id) {
                    self.queue.push(NodeEvent::Gone(gone));
                }
            }
            [kind, _] if kind == b"l" => self.queue.push(NodeEvent::MissedChanges),
            _ => {}
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

/// Returns whether an entry is not after another one of its stream.
fn is_at_or_before(id: &str, other: &str) -> bool {
    let parts = |id: &str| {
        let (time, number) = id.split_once('-')?;
        Some((time.parse::<u64>().ok()?, number.parse::<u64>().ok()?))
    };
    parts(id) <= parts(other)
}

/// Returns the id of the first of some entries.
fn first_id(entries: Value) -> Option<String> {
    let Value::Array(entries) = entries else { return None };
    entries.into_iter().next().and_then(fields).map(|(id, _)| id)
}
