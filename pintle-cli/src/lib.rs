//! The `pintle` command, as a library for its own tests: what was typed, and what it does.

mod args;
pub mod demo;
mod json;
mod paint;
pub mod tour;

use std::{
    fmt,
    io::{self, IsTerminal, Write},
    process::ExitCode,
};

use args::Command;
use paint::Paint;

/// Runs the command that was typed, without the program's own name.
pub fn run(typed: impl IntoIterator<Item = String>) -> ExitCode {
    let done = args::parse(typed).map_err(|error| (2, error)).and_then(|command| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let done = runtime.map_err(Into::into).and_then(|runtime| runtime.block_on(obey(command)));
        done.map_err(|error| (1, error.to_string()))
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, said)) => {
            complain(&format_args!("pintle: {said}"));
            ExitCode::from(code)
        }
    }
}

async fn obey(command: Command) -> pintle::Result<()> {
    match command {
        Command::Help => tell(args::HELP),
        Command::Version => tell(concat!("pintle ", env!("CARGO_PKG_VERSION"), "\n")),
        Command::Tour => {
            let told = tour::tell(&mut io::stdout().lock(), Paint::of(&io::stdout())).await;
            unless_nobody_reads(told)
        }
        Command::Demo => {
            if io::stdin().is_terminal() {
                complain(
                    &"the demo server speaks MCP on standard input and output: start it from a client, or press Ctrl-D",
                );
            }
            demo::server(&demo::Harbour::default()).serve_stdio().await
        }
    }
}

fn tell(text: &str) -> pintle::Result<()> {
    let written = io::stdout().lock().write_all(text.as_bytes());
    unless_nobody_reads(written.map_err(Into::into))
}

/// `pintle | head` is no failure.
fn unless_nobody_reads(told: pintle::Result<()>) -> pintle::Result<()> {
    match told {
        Err(pintle::Error::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        told => told,
    }
}

/// Says something to the person. If even that fails there is nobody to tell.
fn complain(said: &dyn fmt::Display) {
    let _ = writeln!(io::stderr().lock(), "{said}");
}
