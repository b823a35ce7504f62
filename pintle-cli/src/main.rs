//! The `pintle` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    pintle_cli::run(std::env::args_os().skip(1))
}
