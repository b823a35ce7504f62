//! A custom transport: length-prefixed messages over any byte stream.
//!
//! A transport moves whole messages and does not parse them. [`channels`] creates one from two queues, so that the rest is
//! ordinary `async` code: a task that reads and one that writes. (A WebSocket works the same, with its own `next` and `send`.)
//! To poll, implement [`Transport`](pintle::transport::Transport) directly.

#![allow(clippy::print_stdout, reason = "it is what the program is for")]

use std::io;

use pintle::{
    Client, Server,
    server::tool,
    transport::{Channels, channels},
};
use pintle_testing::kits;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::mpsc,
};

/// The maximum size of a message.
const MOST: usize = 16 << 20;

/// Creates a transport of messages that are prefixed with their length, as four bytes.
fn framed<S: AsyncRead + AsyncWrite + Send + 'static>(stream: S) -> Channels {
    let (mut reader, mut writer) = tokio::io::split(stream);
    // The queues are short: a full one makes the sender wait.
    let (incoming, from_stream) = mpsc::channel(16);
    let (to_stream, mut outgoing) = mpsc::channel(16);
    let transport = channels(from_stream, to_stream);
    tokio::spawn(async move {
        // Dropping `incoming` at the end ends the connection.
        while let Ok(length) = reader.read_u32().await {
            let Some(mut message) = buffer(length) else { break };
            if reader.read_exact(&mut message).await.is_err() || incoming.send(message.into()).await.is_err()
            {
                break;
            }
        }
    });
    tokio::spawn(async move {
        while let Some(message) = outgoing.recv().await {
            let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
            let written = async {
                writer.write_u32(length).await?;
                writer.write_all(&message).await?;
                writer.flush().await
            };
            if written.await.is_err() {
                return;
            }
        }
        // The peer should see the end even while this side still reads.
        let _ = writer.shutdown().await;
    });
    transport
}

fn buffer(length: u32) -> Option<Vec<u8>> {
    let length = usize::try_from(length).ok().filter(|length| *length <= MOST)?;
    Some(vec![0; length])
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Any connected byte stream works, such as a socket or a serial line. This is an in-process pipe.
    let (here, there) = tokio::io::duplex(64 << 10);
    let server = Server::new("hello", "1.0.0").tool(tool("hello", || async { "hello" }));
    // The connection is served in the background until the client disconnects.
    drop(server.serve(framed(there))?);
    let connection = Client::new("demo", "0.1.0").connect(framed(here)).await?;
    let result = connection.call_tool("hello", ()).await?;
    println!("{}", result.text());

    // The kit checks the requirements on transports: order, sizes, slow readers, closing. Run it in a test.
    let broken = kits::transport::check(|| async {
        let (here, there) = tokio::io::duplex(64 << 10);
        io::Result::Ok((framed(here), framed(there)))
    });
    match broken.await {
        Ok(()) => println!("the kit finds nothing wrong"),
        Err(broken) => broken.iter().for_each(|broken| println!("{broken}")),
    }
    Ok(())
}
