use std::{
    collections::VecDeque,
    io,
    task::{Context, Poll},
};

use bytes::Bytes;
use pintle::{
    message_log::{MessageLog, Side},
    transport::{Incoming, Memory, Stream, Transport, channels, memory},
};
use pintle_testing::kits::transport as kit;
use tokio::{io::duplex, sync::mpsc};

#[tokio::test]
async fn in_memory() {
    assert_eq!(kit::check(|| async { Ok(memory()) }).await, Ok(()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_memory_on_two_threads() {
    assert_eq!(kit::check(|| async { Ok(memory()) }).await, Ok(()));
}

#[tokio::test]
async fn logged() {
    let check = kit::check(|| async {
        let (left, right) = memory();
        Ok((MessageLog::new(|_| {}).wrap(Side::Client, left), right))
    });
    assert_eq!(check.await, Ok(()));
}

#[tokio::test]
async fn byte_streams() {
    let check = kit::check(|| async {
        let (left, right) = duplex(1000);
        let over = |end| {
            let (reader, writer) = tokio::io::split(end);
            Stream::new(reader, writer)
        };
        Ok((over(left), over(right)))
    });
    assert_eq!(check.await, Ok(()));
}

#[tokio::test]
async fn queues() {
    let check = kit::check(|| async {
        let ((to_right, from_left), (to_left, from_right)) = (mpsc::channel(2), mpsc::channel(2));
        Ok((channels(from_right, to_right), channels(from_left, to_left)))
    });
    assert_eq!(check.await, Ok(()));
}

#[cfg(feature = "net")]
#[tokio::test]
async fn tcp() {
    use pintle::transport::{listen_tcp, tcp};
    let check = kit::check(|| async {
        let mut listener = listen_tcp("127.0.0.1:0").await?;
        let address = listener.address().ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok((tcp(address).await?, listener.accept().await?))
    });
    assert_eq!(check.await, Ok(()));
}

#[cfg(all(unix, feature = "net"))]
#[tokio::test]
async fn unix() {
    use pintle::transport::{listen_unix, unix};
    let path = std::env::temp_dir().join(format!("pintle-kit-{}.sock", std::process::id()));
    let check = kit::check(|| async {
        let mut listener = listen_unix(&path)?;
        Ok((unix(&path).await?, listener.accept().await?))
    });
    assert_eq!(check.await, Ok(()));
}

/// Both ends of standard streams at once: a child that passes on what it gets to a socket.
#[cfg(all(unix, feature = "child", feature = "stdio"))]
#[tokio::test]
async fn child_and_stdio() {
    use tokio::net::TcpListener;

    use crate::support::{child_servers, transport_calls::recv};

    let check = kit::check(|| async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let mut child = child_servers::command(&format!("relay {}", listener.local_addr()?)).spawn()?;
        while recv(&mut child).await.as_deref() != Some("ready") {}
        let (reader, writer) = listener.accept().await?.0.into_split();
        Ok((child, Stream::new(reader, writer)))
    });
    assert_eq!(check.await, Ok(()));
}

/// A transport with faults.
#[derive(Debug)]
struct Faulty {
    inner: Memory,
    fault: Fault,
    held: VecDeque<Bytes>,
    waits: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    SwapsOrder,
    WritesBeforeItReads,
    KeepsFirstWaker,
    HidesTheEnd,
    CutsLongOnes,
}

impl Transport for Faulty {
    fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Incoming>>> {
        if self.fault == Fault::KeepsFirstWaker && self.waits {
            return Poll::Pending;
        }
        if self.fault == Fault::WritesBeforeItReads && self.inner.poll_flush(cx).is_pending() {
            return Poll::Pending;
        }
        let polled = self.inner.poll_recv(cx);
        self.waits = polled.is_pending();
        match polled {
            Poll::Ready(Ok(None)) if self.fault == Fault::HidesTheEnd => Poll::Pending,
            other => other,
        }
    }

    fn send(&mut self, message: Bytes) {
        match self.fault {
            Fault::SwapsOrder if self.held.is_empty() => self.held.push_back(message),
            Fault::CutsLongOnes => self.inner.send(message.slice(..message.len().min(1 << 20))),
            _ => {
                self.inner.send(message);
                self.held.drain(..).for_each(|held| self.inner.send(held));
            }
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.held.drain(..).for_each(|held| self.inner.send(held));
        self.inner.poll_flush(cx)
    }
}

/// Time is paused, so that what hangs is found out at once; nothing here waits for the world.
#[tokio::test(start_paused = true)]
async fn faults_are_found_and_named() {
    for (fault, property) in [
        (Fault::SwapsOrder, "messages arrive in the order they were sent"),
        (Fault::WritesBeforeItReads, "both ends may send 8 MiB before they read"),
        (Fault::KeepsFirstWaker, "a new waker replaces the old one"),
        (Fault::HidesTheEnd, "what was flushed arrives after its sender is dropped, then the end"),
        (Fault::CutsLongOnes, "messages of 1 byte to 4 MiB arrive unchanged"),
    ] {
        let faulty = |inner| Faulty { inner, fault, held: VecDeque::new(), waits: false };
        let broken = kit::check(|| async {
            let (left, right) = memory();
            Ok((faulty(left), faulty(right)))
        });
        let broken = broken.await.unwrap_err();
        assert!(broken.iter().any(|broken| broken.property == property), "{fault:?}: {broken:#?}");
    }
}
