//! One hot path, `n` times: `instructions <case> <n>`. Run under callgrind with two values of `n`, the difference is
//! what one pass costs, free of start-up and of the machine's mood. `cargo xtask instructions` does that.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]

use std::{hint::black_box, process::ExitCode};

use bench::{client, gateway, http, pair, protocol, protocol::Case, relay, server, tasks, typed};

fn main() -> ExitCode {
    let cases = || {
        protocol::CASES
            .iter()
            .chain(server::CASES)
            .chain(tasks::CASES)
            .chain(typed::CASES)
            .chain(pair::CASES)
            .chain(http::CASES)
            .chain(client::CASES)
            .chain(relay::CASES)
            .chain(gateway::CASES)
    };
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if let Some(served) = client::be_limit(&arguments) {
        return if served.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let [name, times] = arguments.as_slice() else {
        cases().for_each(|case| println!("{}", case.name));
        return ExitCode::SUCCESS;
    };
    let (Some(Case { run, .. }), Ok(times)) = (cases().find(|case| case.name == *name), times.parse()) else {
        eprintln!(
            "instructions: `{name} {times}` is not a case and a number: run without arguments for the cases"
        );
        return ExitCode::FAILURE;
    };
    black_box(run(times));
    ExitCode::SUCCESS
}
