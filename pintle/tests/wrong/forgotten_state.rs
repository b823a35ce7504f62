//! A value of the server that is taken without `State`.

use std::sync::{Arc, Mutex};

#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

#[pintle::tool]
async fn save(notes: Arc<Notes>, text: String) -> usize {
    let mut notes = notes.0.lock().unwrap();
    notes.push(text);
    notes.len()
}

type Counter = Mutex<u32>;

#[pintle::tool]
async fn count(counter: Arc<Counter>) -> u32 {
    *counter.lock().unwrap()
}

#[pintle::tool]
async fn maybe(counters: Option<Vec<std::sync::atomic::AtomicU32>>) -> usize {
    counters.map_or(0, |counters| counters.len())
}

/// Its type is an alias, which the attribute cannot see through.
type Shared = Arc<Counter>;

#[pintle::tool]
async fn hidden(counter: Shared) -> u32 {
    *counter.lock().unwrap()
}

#[pintle::prompt]
async fn greet(names: Mutex<String>) -> String {
    names.into_inner().unwrap()
}

fn main() {
    pintle::tools![save, hidden];
}
