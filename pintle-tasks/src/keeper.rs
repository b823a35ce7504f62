//! The care for the tasks of a store: expiry, leases, and tasks whose process has ended.
//!
//! A process holds its tasks by one lease. If that ends, another process takes each of them over: it runs the call of a resumable tool again
//! from its `CallRecord` (`DetachedCall::rerun`), over the answers and `once` values in it, and ends the others. A process that comes back
//! finds another holder when it writes, and stops.

use std::{
    io,
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};

use pintle::{
    proto::RETRY_AFTER_MS,
    server::{AskError, DetachedCall, Server},
    types::{RawObject, RpcError, schema::TaskStatus},
};
use tokio::{runtime::Handle, sync::oneshot, time::sleep};

use super::{
    host::{TaskHost, unreachable_store},
    record::TaskRecord,
    running::{RunningTask, TaskRequest},
    store::{StoredTask, Updated},
};

/// The number of tasks that are taken over, or read again, at a time.
const BATCH: usize = 64;
/// The number of attempts to change a record that others change at the same time.
const ATTEMPTS: usize = 16;

impl TaskHost {
    /// Removes expired tasks as long as there are any, whether or not anybody asks for them. In a store that is shared, others may add some.
    pub(super) fn sweep(self: &Arc<Self>) {
        if self.is_sweeping.swap(true, Ordering::AcqRel) {
            return;
        }
        let host = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                let Some(current) = host.upgrade() else { return };
                let wait = match current.remove_expired().await {
                    Ok(None) if current.store.is_durable() => Duration::from_secs(60),
                    Ok(Some(next)) => Duration::from_millis(next.saturating_sub(current.now()).max(1)),
                    Ok(None) => {
                        current.is_sweeping.store(false, Ordering::Release);
                        return;
                    }
                    Err(error) => {
                        tracing::error!(%error, "expired tasks could not be removed");
                        Duration::from_secs(60)
                    }
                };
                drop(current);
                sleep(wait.min(Duration::from_secs(600))).await;
            }
        });
    }

    async fn remove_expired(&self) -> io::Result<Option<u64>> {
        self.clock.read_once(&*self.store).await?;
        self.store.remove_expired(self.now()).await
    }

    /// Looks after the tasks of a store that outlives this process, as long as the server is there. Has no effect without a runtime.
    pub(super) fn keep(self: &Arc<Self>, server: &Server) {
        if !self.store.is_durable()
            || Handle::try_current().is_err()
            || self.is_kept.swap(true, Ordering::AcqRel)
        {
            return;
        }
        self.sweep();
        let (host, server): (Weak<Self>, _) = (Arc::downgrade(self), server.downgrade());
        tokio::spawn(async move {
            loop {
                let (Some(host), Some(server)) = (host.upgrade(), server.upgrade()) else { return };
                if let Err(error) = host.look_after(&server).await {
                    tracing::error!(%error, "the store of tasks cannot be reached");
                }
                let wait = host.poll.min(host.lease / 3).max(Duration::from_millis(10));
                drop((host, server));
                sleep(wait).await;
            }
        });
    }

    /// Renews the lease, takes over tasks without a process, and reads those that others have changed.
    async fn look_after(self: &Arc<Self>, server: &Server) -> io::Result<()> {
        self.clock.read_once(&*self.store).await?;
        if !self.running().is_empty() {
            self.renew_lease().await?;
            for id in self.store.unread(&self.holder, BATCH).await? {
                let task = self.running().get(&id).cloned();
                if let Some(task) = task {
                    // If too many requests wait, one of them finds out.
                    let _ = task.request(TaskRequest::Read);
                }
            }
            let running: Vec<_> = self.running().values().cloned().collect();
            for task in running.iter().filter(|task| task.is_unsaved.swap(false, Ordering::AcqRel)) {
                let _ = task.request(TaskRequest::Read);
            }
        }
        for orphan in self.store.orphans(self.now(), BATCH).await? {
            self.renew_lease().await?;
            self.take_over(server, orphan).await?;
        }
        Ok(())
    }

    /// Renews the lease of this process, unless it lasts for long enough.
    pub(super) async fn renew_lease(&self) -> io::Result<()> {
        let lease = u64::try_from(self.lease.as_millis()).unwrap_or(u64::MAX);
        let now = self.now();
        if !self.store.is_durable() || now.saturating_sub(self.renewed.load(Ordering::Acquire)) < lease / 3 {
            return Ok(());
        }
        self.clock.read(&*self.store).await?;
        let now = self.now();
        self.store.renew(&self.holder, now.saturating_add(lease)).await?;
        self.renewed.store(now, Ordering::Release);
        Ok(())
    }

    /// Goes on with a task whose process has ended, if its tool is resumable; otherwise ends it.
    async fn take_over(self: &Arc<Self>, server: &Server, orphan: StoredTask) -> io::Result<()> {
        if orphan.expires <= self.now() {
            return Ok(());
        }
        let mut record = match TaskRecord::open(server, orphan) {
            Ok(record) => record,
            Err(error) => {
                tracing::warn!(%error, "a task whose process has ended cannot be read");
                return Ok(());
            }
        };
        record.version += 1;
        // One that was cancelled when its process had ended is only released.
        record.holder = (!record.is_ended()).then(|| self.holder.clone());
        let call = match record.body.call.as_deref() {
            Some(call) => Some(call.clone()),
            None => {
                let reason =
                    "the server ended while the task ran, and its tool cannot be resumed: call it again";
                record.fail(RpcError::internal(reason), self.now());
                None
            }
        };
        // Of several processes one succeeds.
        if self.store.update(&record.seal(server, false)?, &self.quota).await? != Updated::Stored {
            return Ok(());
        }
        let Some(call) = call.filter(|_| record.holder.is_some()) else { return Ok(()) };
        match DetachedCall::rerun(server, &call, record.offered()) {
            Ok(call) => self.start(record, None, call),
            Err(error) => {
                record.version += 1;
                record.fail(error, self.now());
                self.store.update(&record.seal(server, false)?, &self.quota).await?;
            }
        }
        Ok(())
    }

    /// Answers questions of a task. Returns once the answers are stored.
    pub(super) async fn answer(
        &self,
        server: &Server,
        task: TaskPlace,
        answers: Vec<(String, Result<RawObject, AskError>)>,
    ) -> Result<(), RpcError> {
        match task {
            TaskPlace::Here(task) => {
                let (reply, replied) = oneshot::channel();
                requested(&task, TaskRequest::Answer(answers.clone(), reply))?;
                match replied.await {
                    Ok(replied) => replied,
                    Err(_) => {
                        let record = self.stored(server, &task.read(|record| record.id.clone())).await?;
                        self.answer_elsewhere(server, record, &answers).await
                    }
                }
            }
            TaskPlace::Elsewhere(record) => self.answer_elsewhere(server, *record, &answers).await,
        }
    }

    async fn answer_elsewhere(
        &self,
        server: &Server,
        record: TaskRecord,
        answers: &[(String, Result<RawObject, AskError>)],
    ) -> Result<(), RpcError> {
        let now = self.now();
        let change = |record: &mut TaskRecord| {
            let mut is_changed = false;
            for (key, answer) in answers {
                is_changed |= match answer {
                    Ok(answer) => record.answer(key, answer.clone(), now),
                    Err(error) => record.refuse(key, error.clone().into(), now),
                };
            }
            is_changed
        };
        self.change_elsewhere(server, record, change).await.map(drop)
    }

    /// Cancels a task. Returns its record, and whether it had not ended.
    pub(super) async fn cancel(
        &self,
        server: &Server,
        task: TaskPlace,
    ) -> Result<(TaskRecord, bool), RpcError> {
        match task {
            TaskPlace::Here(task) => {
                let (reply, replied) = oneshot::channel();
                requested(&task, TaskRequest::Cancel(reply))?;
                match replied.await {
                    Ok(is_cancelled) => Ok((task.record(), is_cancelled?)),
                    Err(_) => {
                        let record = self.stored(server, &task.read(|record| record.id.clone())).await?;
                        self.cancel_elsewhere(server, record).await
                    }
                }
            }
            TaskPlace::Elsewhere(record) => self.cancel_elsewhere(server, *record).await,
        }
    }

    async fn cancel_elsewhere(
        &self,
        server: &Server,
        record: TaskRecord,
    ) -> Result<(TaskRecord, bool), RpcError> {
        let now = self.now();
        let change = |record: &mut TaskRecord| {
            record.end(TaskStatus::Cancelled, None, Some("cancelled".to_owned()), now)
        };
        self.change_elsewhere(server, record, change).await
    }

    /// Returns a task as it is stored.
    async fn stored(&self, server: &Server, id: &str) -> Result<TaskRecord, RpcError> {
        let stored = self.store.get(id).await.map_err(|error| unreachable_store(&error))?;
        let stored = stored.ok_or_else(|| super::host::unknown(id))?;
        TaskRecord::open(server, stored).map_err(|error| unreachable_store(&error))
    }

    /// Changes the record of a task that another process runs, or none. Returns it, and whether it was changed.
    async fn change_elsewhere(
        &self,
        server: &Server,
        mut record: TaskRecord,
        change: impl Fn(&mut TaskRecord) -> bool,
    ) -> Result<(TaskRecord, bool), RpcError> {
        let unreachable = |error: io::Error| unreachable_store(&error);
        for _ in 0..ATTEMPTS {
            let holder = record.holder.clone();
            if record.is_ended() || !change(&mut record) {
                return Ok((record, false));
            }
            record.version += 1;
            // The process that runs the task finds out.
            record.holder = holder;
            let stored = record.seal(server, record.holder.is_some()).map_err(unreachable)?;
            match self.store.update(&stored, &self.quota).await.map_err(unreachable)? {
                Updated::Stored => return Ok((record, true)),
                Updated::Full => {
                    let message = super::host::too_large(stored.bytes(), "these answers");
                    return Err(RpcError::invalid_params(message));
                }
                Updated::Outdated => record = self.stored(server, &record.id).await?,
            }
        }
        Err(RpcError::overloaded("the task is changed all the time: try again later", RETRY_AFTER_MS))
    }
}

/// Where a task runs.
pub(super) enum TaskPlace {
    /// In this process.
    Here(Arc<RunningTask>),
    /// In another process, or nowhere.
    Elsewhere(Box<TaskRecord>),
}

/// Requests a change of a task that this process runs.
fn requested(task: &RunningTask, request: TaskRequest) -> Result<(), RpcError> {
    match task.request(request) {
        true => Ok(()),
        false => Err(RpcError::overloaded("too many requests wait for this task: try again later", 1000)),
    }
}
