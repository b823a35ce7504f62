//! A transport of your own: messages with their length in front, over any byte stream.
//!
//! A transport moves whole messages, and never looks inside. [`channels`] makes one of two queues, so that the rest is
//! ordinary `async` code: a task that reads and one that writes. (A WebSocket is the same with its own `next` and `send`.)
//! Those who need to poll implement [`Transport`](pintle::transport::Transport), which is three verbs, by hand.

#![allow(clippy::print_stdout, reason = "it is what the program is for")]

use std::io;

use pintle::{
    Client, Server,
    server::tool,
    transport::{Channels, channels, kit},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::mpsc,
};

/// Nobody may make us hold more than this for one message.
const MOST: usize = 16 << 20;

/// Messages with their length in front, as four bytes.
fn framed<S: AsyncRead + AsyncWrite + Send + 'static>(stream: S) -> Channels {
    let (mut reader, mut writer) = tokio::io::split(stream);
    // A few messages may wait on either side; then the other one has to.
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
        // The other side should hear of the end even while we still read.
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
    // Any two ends that are connected will do: a socket, a serial line. Here, a pipe within the process.
    let (here, there) = tokio::io::duplex(64 << 10);
    let server = Server::new("hello", "1.0.0").tool(tool("hello", || async { "hello" }));
    // It goes on by itself until the client hangs up.
    drop(server.serve(framed(there))?);
    let connection = Client::new("demo", "0.1.0").connect(framed(here)).await?;
    let result = connection.call_tool("hello", ()).await?;
    println!("{}", result.text());

    // The kit checks what every transport has to do: order, sizes, slow readers, ends. It belongs into a test.
    let broken = kit::check(|| async {
        let (here, there) = tokio::io::duplex(64 << 10);
        io::Result::Ok((framed(here), framed(there)))
    });
    match broken.await {
        Ok(()) => println!("the kit finds nothing wrong"),
        Err(broken) => broken.iter().for_each(|broken| println!("{broken}")),
    }
    Ok(())
}
