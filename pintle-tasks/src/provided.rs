use std::{sync::Arc, time::Duration};

use pintle::{
    proto::TaskKind,
    server::{Cx, DetachedCall, Notice, Outcome},
    types::{
        RawObject, RpcError,
        method::{self, tasks_extension},
        plain_error,
    },
};
use serde::{Serialize, de::DeserializeOwned};

use super::{
    EXTENSION, Tasks,
    host::{FILTER_MEMBER, TaskHost},
    methods::{cancel, get, list, result, update},
};

/// The tasks of a provider, which answers requests for them itself. Their ids are those of the provider.
///
/// ```
/// use pintle_tasks::{ProvidedTasks, Tasks};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let tasks = ProvidedTasks::new(Tasks::new(), |notice| println!("{notice:?}"));
/// # let _ = tasks;
/// # }
/// ```
#[derive(Debug)]
pub struct ProvidedTasks(Arc<TaskHost>);

impl ProvidedTasks {
    /// Creates tasks of which clients are notified with a function.
    pub fn new(tasks: Tasks, tell: impl Fn(Notice) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tasks.into_host().notifying(tell)))
    }

    /// Makes a call a task, which is kept for this time. Returns the outcome of its request.
    pub async fn adopt(&self, call: DetachedCall, ttl: Option<Duration>) -> Outcome {
        self.0.clone().adopt(call, ttl).await
    }

    /// Returns whether a request is for one of these tasks, and comes from its owner.
    pub async fn has(&self, cx: &Cx) -> bool {
        match cx.params().decode_member::<String>("taskId") {
            Ok(Some(id)) => self.0.find_running(cx, &id).is_some() || self.0.find(cx, &id).await.is_ok(),
            _ => false,
        }
    }

    /// Answers a request for a task, or for the list of tasks.
    pub async fn handle(&self, cx: Cx) -> Outcome {
        if cx.facts().tasks == TaskKind::Extension
            && let Err(error) = cx.require_extension(EXTENSION)
        {
            return Outcome::Failed(error);
        }
        let host = self.0.clone();
        match cx.method() {
            method::TASKS_GET => get(host, cx).await,
            tasks_extension::TASKS_UPDATE => answer(host, cx, update).await,
            method::TASKS_CANCEL => answer(host, cx, cancel).await,
            method::TASKS_RESULT => answer(host, cx, result).await,
            method::TASKS_LIST => answer(host, cx, list).await,
            method => Outcome::Failed(RpcError::method_not_found(method)),
        }
    }

    /// Returns the ids of a subscription that are those of tasks of which its client may be notified.
    pub fn granted(&self, cx: &Cx) -> Vec<String> {
        let filter: Option<RawObject> = cx.params().decode_member("notifications").ok().flatten();
        let ids = filter.and_then(|filter| filter.decode_member::<Vec<String>>(FILTER_MEMBER).ok().flatten());
        ids.into_iter().flatten().filter(|id| self.0.may_watch(id, cx.principal())).collect()
    }
}

/// Runs a method with the params of a call, and returns its outcome.
async fn answer<P: DeserializeOwned, R: Serialize, F: Future<Output = Result<R, RpcError>>>(
    host: Arc<TaskHost>,
    cx: Cx,
    method: impl FnOnce(Arc<TaskHost>, Cx, P) -> F,
) -> Outcome {
    let params = cx.params().decode();
    let params = params
        .map_err(|error| RpcError::invalid_params(format!("`{}`: {}", cx.method(), plain_error(&error))));
    let answered = match params {
        Ok(params) => method(host, cx, params).await,
        Err(error) => Err(error),
    };
    let printed = answered.and_then(|result| {
        RawObject::from_serialize(&result).map_err(|error| RpcError::internal(error.to_string()))
    });
    match printed {
        Ok(result) => Outcome::Complete(result.into()),
        Err(error) => Outcome::Failed(error),
    }
}
