//! The lease of a process: its inbox, which exists while the process does, and its name in the set of processes.
//!
//! A process whose inbox has expired is found by the others, which look at all names in the set. The first one that finds it removes the
//! name and adds an entry to the log of changes, in one step, so that every process is told once: what that process had not published
//! is lost.

use std::{io, sync::Arc};

use pintle::server::http::nodes::{NodeEvent, NodeId};
use tokio::time::sleep;

use crate::{
    connection::{Connection, milliseconds},
    message_queue::{MessageQueue, START},
    reader::{CHANGES_AGE, CHANGES_LENGTH},
};

/// Tells all processes that one of them is gone, unless its inbox is there or another process has told them.
const REPORT: &str = r"
if redis.call('EXISTS', KEYS[1]) == 1 or redis.call('SREM', KEYS[2], ARGV[1]) == 0 then return 0 end
redis.call('XADD', KEYS[3], 'MAXLEN', '~', ARGV[2], '*', 'g', ARGV[1])
redis.call('PEXPIRE', KEYS[3], ARGV[3])
return 1";

impl Connection {
    /// Creates the inbox of a process.
    pub(crate) async fn create_inbox(&self, id: NodeId) -> io::Result<()> {
        let (key, processes) = (self.keys.inbox(id), self.keys.processes());
        let mut commands = redis::pipe();
        commands.atomic();
        commands.cmd("SADD").arg(&processes).arg(id.to_string()).ignore();
        commands.cmd("PEXPIRE").arg(&processes).arg(milliseconds(CHANGES_AGE)).ignore();
        commands.cmd("UNLINK").arg(self.keys.inbox_bytes(id)).ignore();
        commands.cmd("XADD").arg(&key).arg("*").arg("o").arg("").ignore();
        commands.cmd("PEXPIRE").arg(&key).arg(milliseconds(self.options.lease)).ignore();
        self.run_all(&commands).await
    }

    /// Removes the inbox and the name of a process that stops.
    pub(crate) async fn remove_inbox(&self, id: NodeId) -> io::Result<()> {
        let mut commands = redis::pipe();
        // The name first: without an inbox, others would report the process as gone.
        commands.cmd("SREM").arg(self.keys.processes()).arg(id.to_string()).ignore();
        commands.cmd("UNLINK").arg(self.keys.inbox(id)).arg(self.keys.inbox_bytes(id)).ignore();
        self.run_all(&commands).await
    }

    /// Renews the lease of a process. Returns `false` if it has ended.
    async fn renew(&self, id: NodeId) -> io::Result<bool> {
        let key = self.keys.inbox(id);
        let age = milliseconds(CHANGES_AGE);
        let mut commands = redis::pipe();
        commands.cmd("PEXPIRE").arg(&key).arg(milliseconds(self.options.lease));
        for key in [self.keys.changes(), self.keys.processes(), self.keys.epoch()] {
            commands.cmd("PEXPIRE").arg(key).arg(age).ignore();
        }
        let (renewed,): (bool,) = self.run_all(&commands).await?;
        Ok(renewed)
    }

    /// Tells all processes of those that are gone.
    async fn report_gone(&self, id: NodeId) -> io::Result<()> {
        let processes = self.keys.processes();
        let names: Vec<String> = self.run(redis::cmd("SMEMBERS").arg(&processes)).await?;
        let others: Vec<NodeId> =
            names.iter().filter_map(|name| name.parse().ok()).filter(|other| *other != id).collect();
        if others.is_empty() {
            return Ok(());
        }
        let mut commands = redis::pipe();
        for other in &others {
            commands.cmd("EXISTS").arg(self.keys.inbox(*other));
        }
        let there: Vec<bool> = self.run_all(&commands).await?;
        for (gone, _) in others.into_iter().zip(there).filter(|(_, there)| !there) {
            let mut report = redis::cmd("EVAL");
            report.arg(REPORT).arg(3).arg(self.keys.inbox(gone)).arg(&processes).arg(self.keys.changes());
            report.arg(gone.to_string()).arg(CHANGES_LENGTH).arg(milliseconds(CHANGES_AGE));
            self.run::<i64>(&report).await?;
        }
        Ok(())
    }
}

/// Keeps the lease of a process, and looks for processes that are gone.
pub(crate) async fn keep(connection: Connection, id: NodeId, queue: Arc<MessageQueue>) {
    loop {
        sleep(connection.options.lease / 3).await;
        match connection.renew(id).await {
            Ok(true) => {}
            // The others have found that this process was gone.
            Ok(false) => {
                // The entries of the new inbox may have smaller ids, if the clock of Redis was set back.
                queue.set_position(START);
                match connection.create_inbox(id).await {
                    Ok(()) => queue.push(NodeEvent::Gap),
                    Err(error) => tracing::warn!(%error, "the inbox of this process could not be created"),
                }
            }
            Err(error) => {
                tracing::warn!(%error, "the inbox of this process could not be renewed");
                continue;
            }
        }
        if let Err(error) = connection.report_gone(id).await {
            tracing::debug!(%error, "it is not known which processes are gone");
        }
    }
}
