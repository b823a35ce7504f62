//! Futures that cannot move between threads.

use std::rc::Rc;

#[pintle::prompt]
async fn share(text: String) -> String {
    let text = Rc::new(text);
    std::future::ready(()).await;
    text.to_string()
}

#[pintle::resource("x://{text}")]
async fn read(text: String) -> String {
    let text = Rc::new(text);
    std::future::ready(()).await;
    text.to_string()
}

fn main() {}
