//! The tour: the demo server and a client, with every message they exchange.

mod asking;
mod changes;
mod opening;
mod presenter;
mod progress;
mod resources;
mod tools;

use std::io::Write;

pub use crate::output::Paint;
use presenter::Presenter;

/// Runs the tour. Apart from the colours, the output is the same every time.
///
/// # Errors
///
/// Fails if the output cannot be written, or if a call fails.
pub async fn run(out: &mut dyn Write, paint: Paint) -> pintle::Result<()> {
    let mut tour = Presenter::new(out, paint);
    tour.headline("Pintle: a tour of the Model Context Protocol")?;
    tour.paragraph(
        "A server and a client in this process. → marks messages of the client, ← those of the server. All of them were \
         really sent. Long or repeated parts are replaced by an ellipsis.",
    )?;
    opening::run(&mut tour).await?;
    tools::run(&mut tour).await?;
    progress::run(&mut tour).await?;
    asking::run(&mut tour).await?;
    resources::run(&mut tour).await?;
    changes::run(&mut tour).await?;
    tour.chapter("Next steps")?;
    tour.lines(&[
        ("cargo run -- ls demo", "list what the demo server offers; `cargo run -- --help` has all verbs"),
        ("cargo run -- demo", "serve the demo server on standard input and output, for any client"),
        ("pintle-cli/src/demo", "its source, one short file per chapter"),
        ("README.md", "the smallest server, in 8 lines"),
        ("cargo doc --open", "the API documentation, by task"),
    ])?;
    Ok(())
}
