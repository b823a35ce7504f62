//! Asynchronous adapters of blocking readers and writers, each on a detached thread.
//!
//! Tokio's own standard input blocks on a thread that the runtime joins, so a program that is done would hang until the
//! user presses a key. These threads just end with the process.

use std::{
    io::{self, Read, Write},
    pin::Pin,
    task::{Context, Poll, ready},
    thread,
};

use bytes::{Buf, Bytes};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::mpsc,
};

/// How much is handed over at once.
const CHUNK: usize = 32 << 10;
/// How many chunks may be read ahead: enough to keep both sides busy, little enough to hold.
const AHEAD: usize = 4;

/// Reads on a thread.
pub(super) fn reader(mut source: impl Read + Send + 'static) -> io::Result<FromThread> {
    let (tx, chunks) = mpsc::channel(AHEAD);
    thread::Builder::new().name("pintle-reader".into()).spawn(move || {
        let mut buffer = vec![0; CHUNK];
        loop {
            let read = match source.read(&mut buffer) {
                Ok(0) => return,
                Ok(length) => Ok(Bytes::copy_from_slice(&buffer[..length])),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
            let failed = read.is_err();
            if tx.blocking_send(read).is_err() || failed {
                return;
            }
        }
    })?;
    Ok(FromThread { chunks, rest: Bytes::new() })
}

/// Writes on a thread.
pub(super) fn writer(mut sink: impl Write + Send + 'static) -> io::Result<ToThread> {
    let (chunks, mut rx) = mpsc::channel::<Bytes>(1);
    let (tx, written) = mpsc::channel(1);
    thread::Builder::new().name("pintle-writer".into()).spawn(move || {
        while let Some(chunk) = rx.blocking_recv() {
            let result = sink.write_all(&chunk).and_then(|()| sink.flush());
            if tx.blocking_send(result).is_err() {
                return;
            }
        }
    })?;
    Ok(ToThread { chunks, written, busy: false })
}

#[derive(Debug)]
pub(super) struct FromThread {
    chunks: mpsc::Receiver<io::Result<Bytes>>,
    rest: Bytes,
}

impl AsyncRead for FromThread {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.rest.is_empty() {
            match ready!(self.chunks.poll_recv(cx)) {
                None => return Poll::Ready(Ok(())),
                Some(chunk) => self.rest = chunk?,
            }
        }
        let length = self.rest.len().min(buffer.remaining());
        buffer.put_slice(&self.rest[..length]);
        self.rest.advance(length);
        Poll::Ready(Ok(()))
    }
}

/// At most one chunk is under way, so that flushed means written.
#[derive(Debug)]
pub(super) struct ToThread {
    chunks: mpsc::Sender<Bytes>,
    written: mpsc::Receiver<io::Result<()>>,
    busy: bool,
}

impl AsyncWrite for ToThread {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.as_mut().poll_flush(cx))?;
        let chunk = &bytes[..bytes.len().min(CHUNK)];
        match self.chunks.try_send(Bytes::copy_from_slice(chunk)) {
            Ok(()) => {
                self.busy = true;
                Poll::Ready(Ok(chunk.len()))
            }
            Err(_) => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.busy {
            return Poll::Ready(Ok(()));
        }
        let result = ready!(self.written.poll_recv(cx));
        self.busy = false;
        Poll::Ready(result.unwrap_or_else(|| Err(io::ErrorKind::BrokenPipe.into())))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn what_is_written_on_one_thread_is_read_on_another() {
        let (source, sink) = io::pipe().unwrap();
        let (mut reader, mut writer) = (reader(source).unwrap(), writer(sink).unwrap());
        let text = "x".repeat(3 * CHUNK + 1);
        let write = async {
            writer.write_all(text.as_bytes()).await.unwrap();
            writer.flush().await.unwrap();
            drop(writer);
        };
        let mut read = String::new();
        let (_, result) = tokio::join!(write, reader.read_to_string(&mut read));
        result.unwrap();
        assert!(read == text);
    }

    #[tokio::test]
    async fn flushed_is_written_and_a_reader_that_left_is_reported() {
        let (source, sink) = io::pipe().unwrap();
        drop(source);
        let mut writer = writer(sink).unwrap();
        writer.write_all(b"x").await.unwrap();
        assert_eq!(writer.flush().await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
