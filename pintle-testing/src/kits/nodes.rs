//! Checks a connection between processes that you wrote.
//!
//! ```
//! use pintle::server::http::nodes::MemoryFleet;
//! use pintle_testing::kits;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let checked = kits::nodes::check(async || {
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
use pintle::server::http::nodes::{NodeEvent, NodeId, Nodes};
use tokio::time::timeout;

use super::harness::{Broken, Check, Checked, require, wrong};

/// Checks every property, with three processes of one fleet that `open` returns.
///
/// Every call has to return new processes, which may be in the same fleet: every property has sessions of its own.
///
/// # Errors
///
/// All properties that do not hold.
pub async fn check<N: Nodes>(open: impl AsyncFn() -> io::Result<[N; 3]>) -> Result<(), Vec<Broken>> {
    let mut check =
        Check::new(async || open().await.map(|nodes| nodes.map(|node| Arc::new(node) as Arc<dyn Nodes>)));
    check.that("processes have different ids", ids).await;
    check.that("a message to a process reaches it, and no other", to_one).await;
    check.that("the messages of a sender arrive once and in order", in_order).await;
    check.that("a message to a session reaches all others that have it", to_session).await;
    check.that("a process that has left a session gets no messages for it", left).await;
    check.that("a change reaches all other processes", published).await;
    check.that("a process that does not exist is gone", gone).await;
    check.that("nothing is lost if receiving is interrupted", interrupted).await;
    check.end()
}

type ThreeNodes = [Arc<dyn Nodes>; 3];

const LONG: Duration = Duration::from_secs(60);
/// The time that a message takes at most, and the time without a message that shows that none was sent.
const SOON: Duration = Duration::from_secs(20);
const SILENCE: Duration = Duration::from_millis(300);

/// Receives an event. Processes of other properties may be gone.
async fn receive(node: &Arc<dyn Nodes>) -> Checked<NodeEvent> {
    loop {
        match node.receive().await? {
            NodeEvent::Gone(_) => {}
            received => return Ok(received),
        }
    }
}

async fn next(node: &Arc<dyn Nodes>) -> Checked<NodeEvent> {
    match timeout(SOON, receive(node)).await {
        Ok(received) => received,
        Err(_) => wrong("nothing was received"),
    }
}

async fn expect(node: &Arc<dyn Nodes>, text: &str) -> Checked {
    match next(node).await? {
        NodeEvent::Message(message) if message == text.as_bytes() => Ok(()),
        other => wrong(format!("expected the message `{text}`, received {other:?}")),
    }
}

async fn expect_nothing(node: &Arc<dyn Nodes>) -> Checked {
    match timeout(SILENCE, receive(node)).await {
        Err(_) => Ok(()),
        Ok(received) => wrong(format!("expected nothing, received {received:?}")),
    }
}

async fn send_to(from: &Arc<dyn Nodes>, to: NodeId, text: &str, is_there: bool) -> Checked {
    match from.send_to(to, Bytes::copy_from_slice(text.as_bytes())).await? {
        sent if sent == is_there => Ok(()),
        sent => wrong(format!("`send_to` returned {sent}, expected {is_there}")),
    }
}

async fn send(from: &Arc<dyn Nodes>, session: &str, text: &str, expected: usize) -> Checked {
    match from.send(session, Bytes::copy_from_slice(text.as_bytes())).await? {
        sent if sent == expected => Ok(()),
        sent => wrong(format!("`send` reached {sent} processes, expected {expected}")),
    }
}

async fn ids([a, b, c]: ThreeNodes) -> Checked {
    require(a.id() != b.id() && b.id() != c.id() && a.id() != c.id(), "they do not")
}

async fn to_one([a, b, c]: ThreeNodes) -> Checked {
    send_to(&a, b.id(), "to b \u{4e16}\r\n\0", true).await?;
    expect(&b, "to b \u{4e16}\r\n\0").await?;
    send_to(&a, a.id(), "to a", true).await?;
    expect(&a, "to a").await?;
    expect_nothing(&c).await
}

async fn in_order([a, b, _c]: ThreeNodes) -> Checked {
    for n in 0..100 {
        send_to(&a, b.id(), &n.to_string(), true).await?;
    }
    for n in 0..100 {
        expect(&b, &n.to_string()).await?;
    }
    expect_nothing(&b).await
}

async fn to_session([a, b, c]: ThreeNodes) -> Checked {
    let session = format!("kit-session-{}", a.id());
    send(&a, &session, "nobody", 0).await?;
    a.join(&session, LONG).await?;
    send(&a, &session, "only itself", 0).await?;
    for node in [&b, &b, &c] {
        node.join(&session, LONG).await?;
    }
    send(&a, &session, "both", 2).await?;
    expect(&b, "both").await?;
    expect(&c, "both").await?;
    send(&a, &format!("{session}-2"), "another session", 0).await?;
    expect_nothing(&a).await?;
    expect_nothing(&b).await
}

async fn left([a, b, c]: ThreeNodes) -> Checked {
    let session = format!("kit-left-{}", a.id());
    b.join(&session, LONG).await?;
    c.join(&session, LONG).await?;
    b.leave(&session).await?;
    b.leave(&session).await?;
    send(&a, &session, "one", 1).await?;
    expect(&c, "one").await?;
    expect_nothing(&b).await
}

async fn published([a, b, c]: ThreeNodes) -> Checked {
    for text in ["one", "two"] {
        a.publish(Bytes::from_static(text.as_bytes())).await?;
    }
    for node in [&b, &c] {
        for text in ["one", "two"] {
            match next(node).await? {
                NodeEvent::Change(change) if change == text.as_bytes() => {}
                other => return wrong(format!("expected the change `{text}`, received {other:?}")),
            }
        }
    }
    expect_nothing(&a).await
}

async fn gone([a, b, c]: ThreeNodes) -> Checked {
    let nobody = NodeId::random().ok_or("the system's random number generator failed")?;
    send_to(&a, nobody, "lost", false).await?;
    for node in [&a, &b, &c] {
        expect_nothing(node).await?;
    }
    Ok(())
}

async fn interrupted([a, b, _c]: ThreeNodes) -> Checked {
    for n in 0..20 {
        // The future is dropped while the message is on its way.
        let (node, limit) = (b.clone(), Duration::from_millis(n % 3));
        let receiving = tokio::spawn(async move { timeout(limit, receive(&node)).await });
        tokio::task::yield_now().await;
        send_to(&a, b.id(), &n.to_string(), true).await?;
        match receiving.await? {
            Ok(received) => match received? {
                NodeEvent::Message(message) if message == n.to_string() => {}
                other => return wrong(format!("expected message {n}, received {other:?}")),
            },
            Err(_) => expect(&b, &n.to_string()).await?,
        }
    }
    expect_nothing(&b).await
}
