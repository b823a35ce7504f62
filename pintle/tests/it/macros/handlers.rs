//! `#[pintle::handlers]` on an `impl` block.

use std::sync::{Arc, Mutex};

use pintle::{Server, server::Cx};
use serde_json::json;

use super::tool::{listed, text_of};

/// Neither `Clone` nor `Copy`.
#[derive(Default)]
struct Notes {
    kept: Mutex<Vec<String>>,
}

#[pintle::handlers]
impl Notes {
    /// Keep a note.
    #[tool(destructive = false)]
    async fn save(
        &self,
        _cx: Cx,
        /// What to keep.
        #[arg(min_length = 1)]
        text: String,
    ) -> String {
        tokio::task::yield_now().await;
        self.keep(text)
    }

    #[pintle::tool(read_only)]
    fn count(&self) -> usize {
        self.kept.lock().unwrap().len()
    }

    #[tool]
    async fn about() -> &'static str {
        Self::ABOUT
    }

    const ABOUT: &'static str = "notes";

    fn keep(&self, text: String) -> String {
        let mut kept = self.kept.lock().unwrap();
        kept.push(text);
        format!("kept {}", kept.len())
    }
}

#[tokio::test]
async fn methods_are_tools_of_one_value() {
    let server = Server::new("s", "0").tools(Notes::default().into_tools());
    let tools = listed(&server).await;
    assert_eq!(
        tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect::<Vec<_>>(),
        ["save", "count", "about"]
    );
    assert_eq!(tools[0]["description"], "Keep a note.");
    assert_eq!(tools[0]["annotations"], json!({"destructiveHint": false}));
    assert_eq!(
        tools[0]["inputSchema"]["properties"],
        json!({"text": {"type": "string", "description": "What to keep.", "minLength": 1}})
    );
    assert_eq!(text_of(&server, "save", json!({"text": "milk"})).await, "kept 1");
    assert_eq!(text_of(&server, "save", json!({"text": "eggs"})).await, "kept 2");
    assert_eq!(text_of(&server, "count", json!({})).await, "2");
    assert_eq!(text_of(&server, "about", json!({})).await, "notes");
}

#[tokio::test]
async fn others_may_hold_the_value_too() {
    let notes = Arc::new(Notes::default());
    let server = Server::new("s", "0").tools(notes.tools());
    notes.keep("milk".into());
    assert_eq!(text_of(&server, "count", json!({})).await, "1");
}

/// A value that its methods pass on.
#[derive(Default)]
struct Shared(Mutex<Vec<String>>);

#[pintle::handlers]
impl Shared {
    #[tool]
    async fn push(self: Arc<Self>, text: String) -> usize {
        let shared = Arc::clone(&self);
        tokio::spawn(async move { shared.0.lock().unwrap().push(text) }).await.unwrap();
        self.0.lock().unwrap().len()
    }

    #[tool]
    async fn holders(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) > 1
    }

    #[tool]
    fn list(self: Arc<Self>) -> String {
        self.0.lock().unwrap().join(",")
    }
}

#[tokio::test]
async fn methods_may_take_the_shared_value() {
    let shared = Arc::new(Shared::default());
    let server = Server::new("s", "0").tools(shared.tools());
    assert_eq!(text_of(&server, "push", json!({"text": "a"})).await, "1");
    assert_eq!(text_of(&server, "push", json!({"text": "b"})).await, "2");
    assert_eq!(text_of(&server, "list", json!({})).await, "a,b");
    assert_eq!(text_of(&server, "holders", json!({})).await, "true");
}
