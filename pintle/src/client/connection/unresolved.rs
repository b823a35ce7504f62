//! Results of extensions, and what makes the real ones from them.
//!
//! `TaskPolling` of `pintle-tasks` resolves the result type `task` this way: `Connection::perform` gives results of extensions to the code here.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use pintle_types::{
    RawObject, RpcError, method,
    schema::{CallToolResult, ProgressParams},
};

use super::{Connection, options::RequestOptions, slot::OutputSlot};
use crate::{Result, client::asking::Asker};

/// A result type, and how it is resolved.
pub(in crate::client) struct ResultArm {
    pub(in crate::client) extension: String,
    pub(in crate::client) result_type: Box<str>,
    pub(in crate::client) methods: Vec<Box<str>>,
    pub(in crate::client) resolve: Box<Resolve>,
    /// How it is requested and recognized where there are no result types.
    pub(in crate::client) session: Option<SessionArm>,
}

/// How a result type is requested and recognized in a session.
pub(in crate::client) struct SessionArm {
    pub(in crate::client) prepare: Box<Prepare>,
    pub(in crate::client) recognize: fn(&RawObject) -> bool,
}

pub(in crate::client) type Resolve = dyn Fn(Unresolved) -> Resolving<RawObject> + Send + Sync;
pub(in crate::client) type Prepare =
    dyn Fn(Connection, RawObject) -> Pin<Box<dyn Future<Output = Option<RawObject>> + Send>> + Send + Sync;
pub(in crate::client) type Resolving<T> = Pin<Box<dyn Future<Output = Result<T>> + Send>>;

impl ResultArm {
    /// Returns whether a request of this method may have such a result.
    pub(in crate::client) fn is_of(&self, method: &str) -> bool {
        self.methods.iter().any(|known| **known == *method)
    }

    /// Returns the params that ask for such a result in a session.
    pub(in crate::client) async fn prepare(
        &self,
        connection: &Connection,
        params: &RawObject,
    ) -> Option<RawObject> {
        (self.session.as_ref()?.prepare)(connection.clone(), params.clone()).await
    }

    /// Returns whether the result of a prepared request is of this type.
    pub(in crate::client) fn recognizes(&self, result: &RawObject) -> bool {
        self.session.as_ref().is_some_and(|session| (session.recognize)(result))
    }

    pub(in crate::client) fn resolve(&self, unresolved: Unresolved) -> Resolving<RawObject> {
        (self.resolve)(unresolved)
    }
}

impl fmt::Debug for ResultArm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ResultArm").field(&self.result_type).finish()
    }
}

/// A call whose result is one of an extension, for the code that makes the real result from it.
#[derive(Clone)]
pub struct Unresolved {
    connection: Connection,
    method: Arc<str>,
    result: RawObject,
    options: RequestOptions,
}

impl Unresolved {
    pub(in crate::client) fn new(
        connection: &Connection,
        method: &str,
        result: RawObject,
        options: &RequestOptions,
    ) -> Self {
        Self { connection: connection.clone(), method: method.into(), result, options: options.clone() }
    }

    /// Returns the connection.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Returns the method of the call.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Returns the result of the extension.
    pub fn result(&self) -> &RawObject {
        &self.result
    }

    /// Answers an input request with the handlers of the call, or those of the client.
    ///
    /// # Errors
    ///
    /// There is no handler for it, or the handler refused.
    pub async fn answer(&self, key: &str, method: &str, params: RawObject) -> Result<RawObject, RpcError> {
        if !matches!(
            method,
            method::ELICITATION_CREATE | method::SAMPLING_CREATE_MESSAGE | method::ROOTS_LIST
        ) {
            return Err(RpcError::method_not_found(method));
        }
        let state = self.connection.shared();
        let asker = Asker { key: Some(key.into()), ..state.asker() };
        state.answer(self.options.questions(state), asker, method, params).await
    }

    /// Calls back with progress of the call.
    pub fn progress(&self, progress: &ProgressParams) {
        if let Ok(params) = RawObject::from_serialize(progress) {
            self.options.show_progress(params);
        }
    }

    /// Sends another request for this call, with the handlers of the call and without a timeout.
    ///
    /// # Errors
    ///
    /// As [`Connection::call_raw`].
    pub async fn request(&self, method: &'static str, params: RawObject) -> Result<RawObject> {
        self.connection.send(method.into(), params, self.options.for_same_call()).await
    }
}

impl fmt::Debug for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unresolved").field("method", &self.method).finish_non_exhaustive()
    }
}

/// The first response to a call, from [`Call::start`](crate::client::Call::start).
#[non_exhaustive]
#[derive(Clone, Debug)]
pub enum CallStart {
    /// The result.
    Complete(Box<CallToolResult>),
    /// A result of an extension, such as a task.
    Unresolved(Box<Unresolved>),
}

/// Where a result of an extension is put, instead of being resolved.
pub(in crate::client) type UnresolvedSlot = OutputSlot<Unresolved>;
