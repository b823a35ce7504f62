//! Pipelined calls are read and answered in groups: few system calls, however many calls.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use pintle::{
    Server,
    server::{Arguments, tool},
    transport::Stream,
};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf, duplex, split};

use crate::support::pipe::{call, settle};

/// Counts what would be system calls.
struct Counted<T>(T, Arc<AtomicUsize>);

impl<T: AsyncRead + Unpin> AsyncRead for Counted<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.0).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.1.fetch_add(1, Ordering::SeqCst);
        }
        polled
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Counted<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        self.1.fetch_add(1, Ordering::SeqCst);
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// How many reads and writes `calls` calls in one write of the client take.
async fn counted(calls: usize, tool_name: &str) -> (usize, usize) {
    let server = Server::new("s", "0")
        .tool(tool("echo", |Arguments(arguments)| async move { arguments.as_str().to_owned() }))
        .tool(tool("later", || async {
            tokio::task::yield_now().await;
            "later"
        }));
    let (mut ours, theirs) = duplex(1 << 20);
    let (reader, writer) = split(theirs);
    let (reads, writes) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let stream = Stream::new(Counted(reader, reads.clone()), Counted(writer, writes.clone()));
    let serving = server.serve(stream).unwrap();
    settle().await;
    let lines: String = (0..calls).map(|id| format!("{}\n", call(id, tool_name, json!({})))).collect();
    ours.write_all(lines.as_bytes()).await.unwrap();
    let mut answered = 0;
    let mut buffer = vec![0; 1 << 16];
    while answered < calls {
        let read = ours.read(&mut buffer).await.unwrap();
        answered += buffer[..read].iter().filter(|byte| **byte == b'\n').count();
    }
    drop(serving);
    (reads.load(Ordering::SeqCst), writes.load(Ordering::SeqCst))
}

#[tokio::test(start_paused = true)]
async fn calls_that_come_in_one_read_are_answered_in_one_write() {
    assert_eq!(counted(1, "echo").await, (1, 1));
    assert_eq!(counted(10, "echo").await, (1, 1));
    assert_eq!(counted(100, "echo").await, (1, 1));
    let (reads, writes) = counted(1000, "echo").await;
    assert!(reads <= 5 && writes <= 8, "{reads} reads, {writes} writes");
}

#[tokio::test(start_paused = true)]
async fn calls_that_become_tasks_are_answered_in_groups_too() {
    assert_eq!(counted(100, "later").await, (1, 1));
    let (reads, writes) = counted(1000, "later").await;
    assert!(reads <= 5 && writes <= 32, "{reads} reads, {writes} writes");
}
