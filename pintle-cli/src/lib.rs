//! The `pintle` command, as a library for its own tests.

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

/// Runs a command with the given arguments, without the name of the program.
pub fn run(arguments: impl IntoIterator<Item = String>) -> ExitCode {
    let done = args::parse(arguments).map_err(|error| (2, error)).and_then(|command| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let done = runtime.map_err(Into::into).and_then(|runtime| runtime.block_on(execute(command)));
        done.map_err(|error| (1, error.to_string()))
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, message)) => {
            print_error(&format_args!("pintle: {message}"));
            ExitCode::from(code)
        }
    }
}

async fn execute(command: Command) -> pintle::Result<()> {
    match command {
        Command::Help => print(args::HELP),
        Command::Version => print(concat!("pintle ", env!("CARGO_PKG_VERSION"), "\n")),
        Command::Tour => {
            let result = tour::run(&mut io::stdout().lock(), Paint::of(&io::stdout())).await;
            ignore_broken_pipe(result)
        }
        Command::Demo => {
            if io::stdin().is_terminal() {
                print_error(
                    &"the demo server speaks MCP on standard input and output: start it from a client, or press Ctrl-D",
                );
            }
            demo::server(&demo::Harbour::default()).serve_stdio().await
        }
    }
}

fn print(text: &str) -> pintle::Result<()> {
    let written = io::stdout().lock().write_all(text.as_bytes());
    ignore_broken_pipe(written.map_err(Into::into))
}

/// Treats a closed output, as in `pintle | head`, as success.
fn ignore_broken_pipe(result: pintle::Result<()>) -> pintle::Result<()> {
    match result {
        Err(pintle::Error::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Prints a message to standard error, and ignores a failure to do so.
fn print_error(message: &dyn fmt::Display) {
    let _ = writeln!(io::stderr().lock(), "{message}");
}
