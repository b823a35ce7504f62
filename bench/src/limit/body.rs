//! The body of an answer: there in one piece, or a question first and the rest when that is answered.

use std::{
    convert::Infallible,
    future::Future as _,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::oneshot;

use crate::full::Full;

pub(super) enum Reply {
    Whole(Full),
    Asking { question: Option<Bytes>, rest: Option<oneshot::Receiver<Bytes>> },
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Self::Whole(full) => Pin::new(full).poll_frame(task),
            Self::Asking { question, rest } => {
                if let Some(question) = question.take() {
                    return Poll::Ready(Some(Ok(Frame::data(question))));
                }
                let Some(waiting) = rest else { return Poll::Ready(None) };
                let came = ready!(Pin::new(waiting).poll(task));
                *rest = None;
                Poll::Ready(came.ok().map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(full) => full.is_end_stream(),
            Self::Asking { question, rest } => question.is_none() && rest.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(full) => full.size_hint(),
            Self::Asking { .. } => SizeHint::default(),
        }
    }
}
