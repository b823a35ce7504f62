//! Frames of HTTP/2 that no client of good will sends.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use http::Response;
use pintle::server::http::{HttpServing, ShutdownSignal};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
};

use super::serve::{serving, soon};

const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const ENHANCE_YOUR_CALM: &[u8] = &[0, 0, 0, 11];
/// The head and the request are complete.
const END: u8 = 5;
/// `POST http://localhost/`.
const POST: &[u8] = b"\x83\x86\x84\x01\x09localhost";

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

async fn connect(serving: &HttpServing) -> (OwnedReadHalf, OwnedWriteHalf) {
    let (reading, mut writing) = TcpStream::connect(serving.address()).await.unwrap().into_split();
    writing.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    writing.write_all(&frame(SETTINGS, 0, 0, &[])).await.unwrap();
    (reading, writing)
}

/// Returns the next frame of these kinds, with its payload, or `None` at the end of the connection.
async fn next(reading: &mut OwnedReadHalf, kinds: &[u8]) -> Option<(u8, Vec<u8>)> {
    loop {
        let mut head = [0; 9];
        soon(reading.read_exact(&mut head)).await.ok()?;
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        soon(reading.read_exact(&mut payload)).await.ok()?;
        if kinds.contains(&head[3]) {
            return Some((head[3], payload));
        }
    }
}

/// The calls that run, and the most that ran at once.
#[derive(Clone, Default)]
struct Running(Arc<(AtomicUsize, AtomicUsize)>);

impl Running {
    fn begin(&self) -> Self {
        let now = self.0.0.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.1.fetch_max(now, Ordering::SeqCst);
        self.clone()
    }

    fn most(&self) -> usize {
        self.0.1.load(Ordering::SeqCst)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let running = &self.0.0;
        let _ = running.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |now| now.checked_sub(1));
    }
}

/// A server whose calls never end.
async fn endless() -> (HttpServing, Running) {
    let running = Running::default();
    let counted = running.clone();
    let answer = move |_| {
        let running = counted.begin();
        async move {
            let _running = running;
            pending::<Response<String>>().await
        }
    };
    (serving(answer, &ShutdownSignal::new()).await, running)
}

#[tokio::test]
async fn more_streams_than_a_connection_may_have_are_refused() {
    let (serving, running) = endless().await;
    let (mut reading, mut writing) = connect(&serving).await;
    for stream in 0..300 {
        writing.write_all(&frame(HEADERS, END, stream * 2 + 1, POST)).await.unwrap();
    }
    for _ in 200..300 {
        let (_, payload) = next(&mut reading, &[RST_STREAM]).await.unwrap();
        assert_eq!(payload, [0, 0, 0, 7], "REFUSED_STREAM");
    }
    writing.write_all(&frame(PING, 0, 0, &[7; 8])).await.unwrap();
    next(&mut reading, &[PING]).await.unwrap();
    assert_eq!(running.most(), 200);
}

#[tokio::test]
async fn streams_that_are_reset_at_once_are_not_many_calls() {
    let (serving, running) = endless().await;
    let (mut reading, mut writing) = connect(&serving).await;
    let flood = tokio::spawn(async move {
        for stream in (1..40_000).step_by(2) {
            let opened = [frame(HEADERS, END, stream, POST), frame(RST_STREAM, 0, stream, &[0, 0, 0, 8])];
            if writing.write_all(&opened.concat()).await.is_err() {
                return;
            }
        }
        let _ = writing.write_all(&frame(PING, 0, 0, &[7; 8])).await;
    });
    let (kind, payload) = next(&mut reading, &[GOAWAY, PING]).await.unwrap();
    assert_eq!((kind, &payload[4..8]), (GOAWAY, ENHANCE_YOUR_CALM));
    soon(flood).await.unwrap();
    assert!(running.most() <= 200, "{}", running.most());
}

#[tokio::test]
async fn a_head_without_an_end_ends_the_connection() {
    let (serving, running) = endless().await;
    for bytes in [0, 16_000] {
        let (mut reading, mut writing) = connect(&serving).await;
        // One header after the other, each with a name and a value that nobody can omit.
        let part = b"\x00\x01a\x01b".repeat(bytes / 5);
        let flood = tokio::spawn(async move {
            let mut next = frame(HEADERS, 1, 1, POST);
            for _ in 0..100_000 {
                if writing.write_all(&next).await.is_err() {
                    return true;
                }
                next = frame(CONTINUATION, 0, 1, &part);
            }
            false
        });
        let (_, payload) = next(&mut reading, &[GOAWAY]).await.unwrap();
        assert_eq!(&payload[4..8], ENHANCE_YOUR_CALM, "{bytes}");
        drop(reading);
        assert!(soon(flood).await.unwrap(), "{bytes}");
    }
    assert_eq!(running.most(), 0);
}

#[tokio::test]
async fn a_head_that_is_too_long_is_refused() {
    let (serving, running) = endless().await;
    let (mut reading, mut writing) = connect(&serving).await;
    let part = b"\x00\x01a\x01b".repeat(3000);
    writing.write_all(&frame(HEADERS, 1, 1, POST)).await.unwrap();
    writing.write_all(&frame(CONTINUATION, 4, 1, &part)).await.unwrap();
    let (kind, payload) = next(&mut reading, &[HEADERS, RST_STREAM, GOAWAY]).await.unwrap();
    // A status that is written out, in three digits: 431.
    assert_eq!((kind, &payload[..]), (HEADERS, &b"\x48\x83\x69\x90\xff"[..]));
    assert_eq!(running.most(), 0);
}
