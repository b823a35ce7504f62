use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use pintle_types::RpcError;

use super::watched_tasks::{TaskWatch, WantedTask, WatchedTasks};
use crate::server::{
    Cx, Principal, SessionHandle, StateKeys,
    core::provider::registry::{Providers, RegisteredProvider},
};

/// The limit of bytes of the id of a task that a provider returns.
const MAX_ID_BYTES: usize = 2048;

/// The limit of bytes of an id that a client sends: it is longer with each server that it has passed.
pub(crate) const MAX_SEALED_BYTES: usize = 4 * MAX_ID_BYTES;

/// The limit of tasks of one session that are listed.
const MAX_SESSION_TASKS: usize = 1024;

/// The limit of bytes of the ids of tasks that one session is notified of.
const MAX_WATCHED_BYTES: usize = 64 << 10;

/// The address of a task of a provider: what the id that clients get contains.
///
/// The id is sealed for the caller. Nobody else can use it, and the server keeps nothing for it.
#[derive(Debug, PartialEq)]
pub(crate) struct TaskAddress {
    /// The number of the provider.
    pub(crate) provider: usize,
    /// The name of the provider. Another one may have got the number.
    pub(crate) backend: String,
    /// The id that the task has there.
    pub(crate) id: String,
}

impl TaskAddress {
    /// Returns the id for a caller.
    pub(crate) fn seal(&self, caller: &TaskCaller) -> Result<String, RpcError> {
        let Self { provider, backend, id } = self;
        if id.is_empty() || id.len() > MAX_ID_BYTES {
            return Err(RpcError::internal(format!(
                "`{backend}` returned a task with an id of {} bytes: an id has 1 to {MAX_ID_BYTES}",
                id.len()
            )));
        }
        let plain = serde_json::to_vec(&(provider, backend, id)).ok();
        let sealed = plain.and_then(|plain| caller.keys.seal_name(&caller.bound, &plain));
        sealed
            .map(|sealed| URL_SAFE_NO_PAD.encode(sealed))
            .ok_or_else(|| RpcError::internal("the id of a task could not be sealed"))
    }

    /// Reads an id that was sealed for the caller.
    pub(crate) fn open(cx: &Cx, id: &str) -> Option<Self> {
        // One that is too long was not made here.
        if id.len() > MAX_SEALED_BYTES {
            return None;
        }
        let sealed = URL_SAFE_NO_PAD.decode(id).ok()?;
        let plain = cx.outermost_snapshot().settings.keys.open_name(&bound(cx), &sealed)?;
        let (provider, backend, id) = serde_json::from_slice(&plain).ok()?;
        Some(Self { provider, backend, id })
    }

    /// Returns the provider, if the server still has it.
    pub(crate) fn provider<'a>(&self, providers: &'a Providers) -> Option<&'a RegisteredProvider> {
        let known = providers.get(self.provider)?;
        (!known.link.is_removed() && known.info.name == self.backend).then_some(known)
    }
}

/// The caller that ids of tasks are sealed for.
pub(crate) struct TaskCaller {
    keys: StateKeys,
    bound: String,
    session: Option<SessionHandle>,
}

impl TaskCaller {
    pub(crate) fn of(cx: &Cx) -> Self {
        let keys = cx.outermost_snapshot().settings.keys.clone();
        Self { keys, bound: bound(cx), session: cx.session() }
    }

    /// Has the session of the caller notified of a task that it has started. Of very many, the first are forgotten.
    pub(crate) fn watch(&self, watched: &Arc<WatchedTasks>, task: WantedTask) {
        let Some(session) = &self.session else { return };
        // A session that has ended is not notified.
        let Ok(watches) = session.get_or_insert_with(SessionTaskWatches::default) else { return };
        let mut watches = watches.0.lock().unwrap_or_else(PoisonError::into_inner);
        watches.bytes += task.bytes();
        watches.watches.push_back(watched.watch(task));
        while watches.bytes > MAX_WATCHED_BYTES
            && let Some(first) = watches.watches.pop_front()
        {
            watches.bytes -= first.task.bytes();
        }
    }
}

/// The tasks of providers that a session is notified of.
#[derive(Default)]
struct SessionTaskWatches(Mutex<WatchQueue>);

#[derive(Default)]
struct WatchQueue {
    watches: VecDeque<TaskWatch>,
    bytes: usize,
}

/// Returns what ids for the caller are bound to. Of an anonymous caller without a session nothing is known: the id is what only it has.
fn bound(cx: &Cx) -> String {
    match cx.identity() {
        Principal::Local => "task of local".to_owned(),
        Principal::Named(name) => format!("task of name:{name}"),
        Principal::Anonymous => match cx.session().and_then(|session| session.id()) {
            Some(number) => format!("task of session:{number}"),
            None => "task of anonymous".to_owned(),
        },
    }
}

/// The tasks of providers that a session has started. A provider may list those of other sessions too, because it knows one client
/// only.
#[derive(Default)]
pub(crate) struct StartedTasks(Mutex<VecDeque<u64>>);

impl StartedTasks {
    /// Notes that the session of a caller has started a task. Of very many, the first are forgotten.
    pub(crate) fn note(caller: &TaskCaller, id: &str) {
        let Some(session) = &caller.session else { return };
        // A session that has ended lists nothing.
        let Ok(started) = session.get_or_insert_with(Self::default) else { return };
        let mut started = started.0.lock().unwrap_or_else(PoisonError::into_inner);
        let digest = digest(id);
        if started.contains(&digest) {
            return;
        }
        if started.len() >= MAX_SESSION_TASKS {
            started.pop_front();
        }
        started.push_back(digest);
    }

    /// Returns whether the session of a caller has started a task.
    pub(crate) fn has(caller: &TaskCaller, id: &str) -> bool {
        let started = caller.session.as_ref().and_then(|session| session.get::<Self>());
        started.is_some_and(|started| {
            started.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&digest(id))
        })
    }
}

/// Returns a part of an id that nobody can choose: its end is a tag of the seal.
fn digest(id: &str) -> u64 {
    let end = id.len().saturating_sub(11);
    let bytes = id.as_bytes().get(end..).unwrap_or_default();
    bytes.iter().fold(0, |digest: u64, byte| digest.rotate_left(6) ^ u64::from(*byte))
}
