//! The tour: the demo server and a client, chapter by chapter, word by word.

mod asking;
mod changes;
mod opening;
mod resources;
mod stage;
mod telling;
mod tools;

use std::io::Write;

pub use crate::paint::Paint;
use stage::Stage;

/// Tells the tour. The same words every time, but for the colours.
///
/// # Errors
///
/// The output cannot be written, or the server did not do what it was made for.
pub async fn tell(out: &mut dyn Write, paint: Paint) -> pintle::Result<()> {
    let mut stage = Stage::new(out, paint);
    stage.headline("Pintle: the Model Context Protocol, spoken")?;
    stage.say(
        "A server and a client, both in this process. → is what the client says, ← what the server says, and all of it \
         was really said. What is long, or was shown before, is cut with an ellipsis.",
    )?;
    opening::tell(&mut stage).await?;
    tools::tell(&mut stage).await?;
    telling::tell(&mut stage).await?;
    asking::tell(&mut stage).await?;
    resources::tell(&mut stage).await?;
    changes::tell(&mut stage).await?;
    stage.chapter("And now")?;
    stage.lines(&[
        ("cargo run -- demo", "this server on standard input and output, for any client"),
        ("pintle-cli/src/demo", "its source: a file for each chapter, none longer than a page"),
        ("README.md", "the smallest server, 8 lines"),
        ("cargo doc --open", "everything else, by task"),
    ])?;
    Ok(())
}
