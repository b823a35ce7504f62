use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use pintle_types::{
    RawObject,
    schema::{ProgressParams, ProgressToken},
};

use super::handlers::BoxFuture;

/// Sends the params of a progress notification.
type SendProgress = dyn Fn(RawObject) -> BoxFuture<()> + Send + Sync;

/// The progress reports of an answer that the server requested.
#[derive(Clone)]
pub(in crate::client) struct QuestionProgress {
    token: ProgressToken,
    /// The progress that was reported last.
    last: Arc<Mutex<Option<f64>>>,
    send: Arc<SendProgress>,
}

impl QuestionProgress {
    pub(in crate::client) fn new(
        token: ProgressToken,
        send: impl Fn(RawObject) -> BoxFuture<()> + Send + Sync + 'static,
    ) -> Self {
        Self { token, last: Arc::default(), send: Arc::new(send) }
    }

    pub(in crate::client) async fn send(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        {
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            if !done.is_finite() || last.is_some_and(|last| done <= last) {
                return;
            }
            *last = Some(done);
        }
        let mut params = ProgressParams::new(self.token.clone(), done);
        params.total = total.filter(|total| total.is_finite());
        params.message = message.map(Into::into);
        if let Ok(params) = RawObject::from_serialize(&params) {
            (self.send)(params).await;
        }
    }
}

impl fmt::Debug for QuestionProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuestionProgress").field("token", &self.token).finish_non_exhaustive()
    }
}
