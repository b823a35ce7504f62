use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, ReadBuf};

/// A function that is called with the number of bytes of each read.
pub(super) type ReadCallback = Arc<dyn Fn(usize) + Send + Sync>;

/// A pipe whose reads are counted, if somebody counts them.
pub(super) struct Counted<R> {
    pub(super) reader: R,
    pub(super) on_read: Option<ReadCallback>,
}

impl<R: AsyncRead + Unpin> AsyncRead for Counted<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.reader).poll_read(cx, buffer))?;
        if let Some(on_read) = &self.on_read {
            on_read(buffer.filled().len() - before);
        }
        Poll::Ready(Ok(()))
    }
}
