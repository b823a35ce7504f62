//! A future that cannot move between threads.

use std::rc::Rc;

#[pintle::tool]
async fn share(text: String) -> usize {
    let text = Rc::new(text);
    std::future::ready(()).await;
    text.len()
}

fn main() {}
