//! The tour: the demo server and a client, with every message they exchange.

mod asking;
mod changes;
mod json;
mod opening;
mod presenter;
mod progress;
mod resources;
mod tools;

use std::io::Write;

pub use crate::output::Paint;
use presenter::Presenter;

/// How much of the tour is shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Length {
    /// A few screens a chapter: one era where both do the same, and the beginning of long messages.
    Short,
    /// Every chapter, in both eras, with whole messages.
    All,
}

/// The verbs that the tour ends with, and what they do. All of them work on the demo server.
pub const VERBS: [(&str, &str); 12] = [
    ("pintle ls demo", "what a server offers: tools, prompts, resources"),
    ("pintle call demo tide port=bergen hour=4", "call a tool"),
    ("pintle call demo tide --help", "the arguments of a tool"),
    (
        "pintle call demo berth --answer boat=Tern --answer nights=3",
        "a tool that asks; without answers, you are",
    ),
    ("pintle read demo 'harbour://tides/{port}/{hour}' port=lerwick hour=4", "a resource of a template"),
    ("pintle prompt demo passage to=bergen", "a prompt"),
    ("pintle complete demo passage to=b", "the values of an argument"),
    ("pintle info demo --era session", "a server, in the older era"),
    ("pintle ping demo --json", "any result as JSON"),
    ("pintle lint demo", "what to improve"),
    ("pintle doctor demo", "step by step, why a server does not work"),
    ("pintle repl demo", "all of these at a prompt, with completion"),
];

/// Runs the tour. Apart from the colours, the output is the same every time.
///
/// # Errors
///
/// Fails if the output cannot be written, or if a call fails.
pub async fn run(out: &mut dyn Write, paint: Paint, length: Length) -> pintle::Result<()> {
    let mut tour = Presenter::new(out, paint, length);
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
    tour.chapter("The same from the command line")?;
    tour.paragraph(
        "The command speaks to any server: at a URL, by the name that a host has for it, or a program after `--`. In a \
         clone of the repository, `cargo run --` stands for `pintle`.",
    )?;
    tour.gap()?;
    tour.verbs(&VERBS)?;
    tour.chapter("Next steps")?;
    if length == Length::Short {
        tour.lines(&[("pintle tour --all", "the chapters that were left out, and whole messages")])?;
    }
    tour.lines(&[
        ("pintle demo --http", "serve the demo server at a URL, without `--http` on stdio"),
        ("pintle --help", "all verbs"),
        ("pintle-cli/src/demo", "its source, one short file per chapter"),
        ("README.md", "the smallest server, in 8 lines"),
        ("cargo doc --open", "the API documentation, by task"),
    ])?;
    Ok(())
}
