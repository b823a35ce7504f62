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

fn main() {
    pintle::tools![save];
}
