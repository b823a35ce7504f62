//! Tools and state of one session: a shop whose checkout appears when something is in the basket.
//!
//! A session is the conversation with a client of an older revision. A client of the stateless era has none: it sees the same tools
//! whatever it called before, so it passes its basket along instead.

use std::sync::{Mutex, PoisonError};

use pintle::{
    Server,
    server::{Cx, SessionHandle, ToolError, tool},
};

/// The basket of a session, dropped when the session ends.
#[derive(Default)]
struct Basket(Mutex<Vec<String>>);

impl Basket {
    fn with<T>(&self, change: impl FnOnce(&mut Vec<String>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Put something into the basket.
#[pintle::tool(destructive = false, open_world = false)]
async fn pick(cx: Cx, item: String) -> Result<String, ToolError> {
    let session = cx.session().ok_or("your client has no session: use `buy` with all items at once")?;
    let count = session.get_or_insert_with(Basket::default)?.with(|items| {
        items.push(item);
        items.len()
    });
    if count == 1 {
        // Only this session sees it, and its client is notified.
        session.add_tool(tool("check_out", check_out).description("Buy what is in the basket."))?;
    }
    Ok(format!("{count} in the basket"))
}

async fn check_out(cx: Cx) -> Result<String, ToolError> {
    let session: SessionHandle = cx.session().ok_or("the session has ended")?;
    let items = session.get_or_insert_with(Basket::default)?.with(std::mem::take);
    session.remove_tool("check_out");
    Ok(buy(&items))
}

/// Buy several items at once.
#[pintle::tool(name = "buy", open_world = false)]
async fn buy_all(items: Vec<String>) -> String {
    buy(&items)
}

fn buy(items: &[String]) -> String {
    format!("bought {}", items.join(", "))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> pintle::Result<()> {
    Server::new("shop", "1.0.0").tools(pintle::tools![pick, buy_all]).serve_stdio().await
}
