use bytes::Bytes;
use pintle_proto::{
    inputs::AskError,
    server::{Call, Outcome},
};
use pintle_types::{RawObject, schema::InputRequest};
use tokio::sync::{mpsc, oneshot};

/// A call's way to whoever owns its stream. One queue for all it says, so that it arrives in the order it was said.
#[derive(Clone, Debug)]
pub(crate) struct Port(mpsc::Sender<Said>);

/// What a call says.
#[derive(Debug)]
pub(crate) enum Said {
    /// A notification, printed.
    Notice(Bytes),
    /// A question to be sent now. The answer comes back as the client worded it.
    Ask(InputRequest, oneshot::Sender<Result<RawObject, AskError>>),
    /// Its end.
    Done(Call, Outcome),
}

impl Port {
    /// As many messages may wait as one write takes anyway; who says more waits.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Said>) {
        let (tx, rx) = mpsc::channel(128);
        (Self(tx), rx)
    }

    /// Says something. If the stream is gone nobody is left to be told.
    pub(crate) async fn say(&self, said: Said) {
        let _ = self.0.send(said).await;
    }

    /// Says something if there is room for it at once.
    pub(crate) fn try_say(&self, said: Said) -> bool {
        self.0.try_send(said).is_ok()
    }

    /// Whether something could be said at once.
    pub(crate) fn has_room(&self) -> bool {
        self.0.capacity() > 0
    }

    /// Sends a question and waits for its answer.
    pub(crate) async fn ask(&self, request: InputRequest) -> Result<RawObject, AskError> {
        let (tx, rx) = oneshot::channel();
        self.say(Said::Ask(request, tx)).await;
        rx.await.unwrap_or(Err(AskError::CallOver))
    }
}
