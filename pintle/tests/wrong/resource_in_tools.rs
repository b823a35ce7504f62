//! A resource among tools.

#[pintle::resource("notes://news")]
async fn news() -> &'static str {
    "Nothing."
}

fn main() {
    pintle::tools![news];
}
