//! The calls that are open on a connection, and the questions that belong to none of them.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering},
};

use pintle::{
    forward::{ForwardQuestion, QuestionHandler, question_keys},
    server::SessionHandle,
    types::{RawObject, RpcError, schema::InputRequest},
};
use tokio::sync::{Notify, mpsc, oneshot, watch};

use crate::{lock::lock, meta::without_meta};

/// The limit of questions that wait for a call.
const MAX_OUTSIDE: usize = 16;

/// The calls that are open on a link.
#[derive(Debug, Default)]
pub(crate) struct LinkCalls {
    last: AtomicU64,
    senders: Mutex<Vec<(u64, mpsc::Sender<Box<OpenQuestion>>)>>,
    /// The number of cancellations that the server may not have read.
    pub(crate) unread_cancellations: watch::Sender<usize>,
    /// The number of questions without an answer that were asked while there was no call.
    pub(crate) outside: watch::Sender<usize>,
    /// Notified when a call is entered.
    entered: Notify,
}

impl LinkCalls {
    /// Enters a call.
    pub(crate) fn enter(calls: &Arc<Self>, questions: mpsc::Sender<Box<OpenQuestion>>) -> EnteredCall {
        let id = calls.last.fetch_add(1, Ordering::Relaxed);
        lock(&calls.senders).push((id, questions));
        calls.entered.notify_waiters();
        EnteredCall { id, calls: calls.clone() }
    }

    /// Returns the handler of questions that cannot be attributed to a call: they go to the newest one, or else to the session, or
    /// else to the next call.
    pub(crate) fn handler(self: Arc<Self>, session: Option<SessionHandle>) -> QuestionHandler {
        Arc::new(move |question| {
            let newest = lock(&self.senders).last().map(|(_, sender)| sender.clone());
            let (session, calls) = (session.clone(), self.clone());
            let may_be_late = *self.unread_cancellations.borrow() > 0;
            Box::pin(async move {
                match (newest, session) {
                    // Whose it is cannot be known.
                    (Some(_), None) | (None, _) if may_be_late => {
                        Err(RpcError::internal("the call was cancelled"))
                    }
                    (Some(newest), _) => sending_to(newest)(question).await,
                    (None, Some(session)) => ask_session(&session, question).await,
                    (None, None) => calls.ask_next(question).await,
                }
            })
        })
    }

    /// Asks the next call, or the one after it if that ends without an answer. The request of the call is not sent before.
    async fn ask_next(self: Arc<Self>, question: ForwardQuestion) -> Result<RawObject, RpcError> {
        struct Counted(Arc<LinkCalls>);
        impl Drop for Counted {
            fn drop(&mut self) {
                self.0.outside.send_modify(|count| *count -= 1);
            }
        }
        if *self.outside.borrow() >= MAX_OUTSIDE {
            return Err(RpcError::internal("too many questions wait for a call: ask during one"));
        }
        self.outside.send_modify(|count| *count += 1);
        let calls = Counted(self);
        loop {
            let entered = calls.0.entered.notified();
            let newest = lock(&calls.0.senders).last().map(|(_, sender)| sender.clone());
            let Some(newest) = newest else {
                entered.await;
                continue;
            };
            let (answer, answered) = oneshot::channel();
            let asked = OpenQuestion { question: question.clone(), answer };
            if newest.send(Box::new(asked)).await.is_ok()
                && let Ok(answered) = answered.await
            {
                return answered;
            }
            // That call has ended.
            tokio::task::yield_now().await;
        }
    }
}

/// Asks the client of a session a question that belongs to no call.
async fn ask_session(session: &SessionHandle, question: ForwardQuestion) -> Result<RawObject, RpcError> {
    let ForwardQuestion { method, params, .. } = question;
    let request = InputRequest::new(method, &without_meta(params, &[question_keys::META]));
    let request = request.map_err(|error| RpcError::internal(error.to_string()))?;
    session.forward_request(request).await
}

/// A call that is open on a link, until this is dropped.
#[derive(Debug)]
pub(crate) struct EnteredCall {
    id: u64,
    calls: Arc<LinkCalls>,
}

impl Drop for EnteredCall {
    fn drop(&mut self) {
        lock(&self.calls.senders).retain(|(id, _)| *id != self.id);
    }
}

/// A question of the server behind that waits for its answer.
#[derive(Debug)]
pub(crate) struct OpenQuestion {
    pub(crate) question: ForwardQuestion,
    /// Closed if the server no longer waits.
    pub(crate) answer: oneshot::Sender<Result<RawObject, RpcError>>,
}

/// Returns a handler that queues questions, and waits for their answers.
pub(crate) fn sending_to(queue: mpsc::Sender<Box<OpenQuestion>>) -> QuestionHandler {
    Arc::new(move |question| {
        let queue = queue.clone();
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let over = || RpcError::internal("the call has ended: ask before it ends");
            queue.send(Box::new(OpenQuestion { question, answer })).await.map_err(|_| over())?;
            answered.await.unwrap_or_else(|_| Err(over()))
        })
    })
}
