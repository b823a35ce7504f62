//! Checks a connection between processes that you wrote.
//!
//! ```
//! use pintle::server::http::nodes::{MemoryFleet, kit};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let checked = kit::check(async || {
//!     let fleet = MemoryFleet::new();
//!     Ok([fleet.node()?, fleet.node()?, fleet.node()?])
//! });
//! if let Err(broken) = checked.await {
//!     panic!("{broken:#?}");
//! }
//! # }
//! ```

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::time::timeout;

use super::{NodeEvent, NodeId, Nodes};
use crate::{
    properties::{Property, PropertyResult, check as check_properties},
    transport::kit::Broken,
};

/// Checks every property, with three processes of one fleet that `open` returns.
///
/// Every call has to return new processes, which may be in the same fleet: every property has sessions of its own. It takes a moment,
/// and ten seconds for each property that hangs; run it under real time.
///
/// # Errors
///
/// All properties that do not hold.
pub async fn check<N: Nodes>(open: impl AsyncFn() -> io::Result<[N; 3]>) -> Result<(), Vec<Broken>> {
    check_properties(&PROPERTIES, async || {
        open().await.map(|nodes| nodes.map(|node| Arc::new(node) as Arc<dyn Nodes>))
    })
    .await
}

type ThreeNodes = [Arc<dyn Nodes>; 3];

const PROPERTIES: [Property<ThreeNodes>; 8] = [
    ("processes have different ids", |fleet| Box::pin(ids(fleet))),
    ("a message to a process reaches it, and no other", |fleet| Box::pin(to_one(fleet))),
    ("the messages of a sender arrive once and in order", |fleet| Box::pin(in_order(fleet))),
    ("a message to a session reaches all others that have it", |fleet| Box::pin(to_session(fleet))),
    ("a process that has left a session gets no messages for it", |fleet| Box::pin(left(fleet))),
    ("a change reaches all other processes", |fleet| Box::pin(published(fleet))),
    ("a process that does not exist is gone", |fleet| Box::pin(gone(fleet))),
    ("nothing is lost if receiving is interrupted", |fleet| Box::pin(interrupted(fleet))),
];

const LONG: Duration = Duration::from_secs(60);
/// The time that a message takes at most, and the time without a message that shows that none was sent.
const SOON: Duration = Duration::from_secs(20);
const SILENCE: Duration = Duration::from_millis(300);

/// Receives an event. Processes of other properties may be gone.
async fn receive(node: &Arc<dyn Nodes>) -> Result<NodeEvent, String> {
    loop {
        match node.receive().await.map_err(failed)? {
            NodeEvent::Gone(_) => {}
            received => return Ok(received),
        }
    }
}

async fn next(node: &Arc<dyn Nodes>) -> Result<NodeEvent, String> {
    match timeout(SOON, receive(node)).await {
        Ok(received) => received,
        Err(_) => Err("nothing was received".into()),
    }
}

async fn expect(node: &Arc<dyn Nodes>, text: &str) -> PropertyResult {
    match next(node).await? {
        NodeEvent::Message(message) if message == text.as_bytes() => Ok(()),
        other => Err(format!("expected the message `{text}`, received {other:?}")),
    }
}

async fn expect_nothing(node: &Arc<dyn Nodes>) -> PropertyResult {
    match timeout(SILENCE, receive(node)).await {
        Err(_) => Ok(()),
        Ok(received) => Err(format!("expected nothing, received {received:?}")),
    }
}

async fn send_to(from: &Arc<dyn Nodes>, to: NodeId, text: &str, is_there: bool) -> PropertyResult {
    match from.send_to(to, Bytes::copy_from_slice(text.as_bytes())).await.map_err(failed)? {
        sent if sent == is_there => Ok(()),
        sent => Err(format!("`send_to` returned {sent}, expected {is_there}")),
    }
}

async fn send(from: &Arc<dyn Nodes>, session: &str, text: &str, expected: usize) -> PropertyResult {
    match from.send(session, Bytes::copy_from_slice(text.as_bytes())).await.map_err(failed)? {
        sent if sent == expected => Ok(()),
        sent => Err(format!("`send` reached {sent} processes, expected {expected}")),
    }
}

async fn ids([a, b, c]: ThreeNodes) -> PropertyResult {
    if a.id() != b.id() && b.id() != c.id() && a.id() != c.id() { Ok(()) } else { Err("they do not".into()) }
}

async fn to_one([a, b, c]: ThreeNodes) -> PropertyResult {
    send_to(&a, b.id(), "to b \u{4e16}\r\n\0", true).await?;
    expect(&b, "to b \u{4e16}\r\n\0").await?;
    send_to(&a, a.id(), "to a", true).await?;
    expect(&a, "to a").await?;
    expect_nothing(&c).await
}

async fn in_order([a, b, _c]: ThreeNodes) -> PropertyResult {
    for n in 0..100 {
        send_to(&a, b.id(), &n.to_string(), true).await?;
    }
    for n in 0..100 {
        expect(&b, &n.to_string()).await?;
    }
    expect_nothing(&b).await
}

async fn to_session([a, b, c]: ThreeNodes) -> PropertyResult {
    let session = format!("kit-session-{}", a.id());
    send(&a, &session, "nobody", 0).await?;
    a.join(&session, LONG).await.map_err(failed)?;
    send(&a, &session, "only itself", 0).await?;
    for node in [&b, &b, &c] {
        node.join(&session, LONG).await.map_err(failed)?;
    }
    send(&a, &session, "both", 2).await?;
    expect(&b, "both").await?;
    expect(&c, "both").await?;
    send(&a, &format!("{session}-2"), "another session", 0).await?;
    expect_nothing(&a).await?;
    expect_nothing(&b).await
}

async fn left([a, b, c]: ThreeNodes) -> PropertyResult {
    let session = format!("kit-left-{}", a.id());
    b.join(&session, LONG).await.map_err(failed)?;
    c.join(&session, LONG).await.map_err(failed)?;
    b.leave(&session).await.map_err(failed)?;
    b.leave(&session).await.map_err(failed)?;
    send(&a, &session, "one", 1).await?;
    expect(&c, "one").await?;
    expect_nothing(&b).await
}

async fn published([a, b, c]: ThreeNodes) -> PropertyResult {
    for text in ["one", "two"] {
        a.publish(Bytes::from_static(text.as_bytes())).await.map_err(failed)?;
    }
    for node in [&b, &c] {
        for text in ["one", "two"] {
            match next(node).await? {
                NodeEvent::Change(change) if change == text.as_bytes() => {}
                other => return Err(format!("expected the change `{text}`, received {other:?}")),
            }
        }
    }
    expect_nothing(&a).await
}

async fn gone([a, b, c]: ThreeNodes) -> PropertyResult {
    let nobody = NodeId::random().ok_or("the system has no random numbers")?;
    send_to(&a, nobody, "lost", false).await?;
    for node in [&a, &b, &c] {
        expect_nothing(node).await?;
    }
    Ok(())
}

async fn interrupted([a, b, _c]: ThreeNodes) -> PropertyResult {
    for n in 0..20 {
        // The future is dropped while the message is on its way.
        let (node, limit) = (b.clone(), Duration::from_millis(n % 3));
        let receiving = tokio::spawn(async move { timeout(limit, receive(&node)).await });
        tokio::task::yield_now().await;
        send_to(&a, b.id(), &n.to_string(), true).await?;
        match receiving.await.map_err(|error| error.to_string())? {
            Ok(received) => match received? {
                NodeEvent::Message(message) if message == n.to_string() => {}
                other => return Err(format!("expected message {n}, received {other:?}")),
            },
            Err(_) => expect(&b, &n.to_string()).await?,
        }
    }
    expect_nothing(&b).await
}

#[expect(clippy::needless_pass_by_value, reason = "it stands where an error is given away")]
fn failed(error: io::Error) -> String {
    format!("the connection failed: {error}")
}
