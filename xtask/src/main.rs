//! The project's own commands. `cargo xtask` alone lists them.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line talks to its terminal")]

mod api;
mod bench;
mod budget;
mod cargo;
mod chaos;
mod conformance;
mod dist;
mod features;
mod fleet;
mod fuzz;
mod instructions;
mod interop;
mod limits;
mod login;
mod npm;
mod openapi;
mod page;
mod pip;
mod process;
mod program;
mod rebuild;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use cargo::Failure;

struct Command {
    name: &'static str,
    usage: &'static str,
    about: &'static str,
    run: fn(&[String]) -> Result<(), Failure>,
}

const COMMANDS: &[Command] = &[
    Command {
        name: "test",
        usage: "[--quick | --all] [--plan]",
        about: "everything CI runs that can run here; `--quick` is the inner loop, `--all` is what CI asks for",
        run: test::command,
    },
    Command {
        name: "tidy",
        usage: "[--list measure [folder]]",
        about: "the layering and house rules; `--list` shows what a measure counts",
        run: tidy::command,
    },
    Command {
        name: "limits",
        usage: "",
        about: "writes `docs/limits.md` from the table of the ledger",
        run: limits::command,
    },
    Command {
        name: "features",
        usage: "",
        about: "each crate with no feature, and with each feature alone",
        run: features::command,
    },
    Command {
        name: "budget",
        usage: "",
        about: "how many crates each published crate pulls in, against its budget",
        run: budget::command,
    },
    Command {
        name: "dist",
        usage: "",
        about: "the command as it is distributed, in `target/dist`",
        run: dist::command,
    },
    Command {
        name: "api",
        usage: "[--bless]",
        about: "the public API of each library, against its snapshot; `--bless` makes a new one",
        run: api::command,
    },
    Command {
        name: "conformance",
        usage: "[--only run] [--scenario name] [--through bridge|gateway|fleet] [--server program] [--client program]",
        about: "the official suite, against our server and our client; needs npm",
        run: conformance::command,
    },
    Command {
        name: "interop",
        usage: "[--only row]",
        about: "our client and server with those of other SDKs; needs npm and Python",
        run: interop::command,
    },
    Command {
        name: "verbs",
        usage: "[--only row]",
        about: "the verbs of the command with the demo, the fixture and servers of other SDKs; needs npm and Python",
        run: interop::verbs::command,
    },
    Command {
        name: "login",
        usage: "[case…]",
        about: "our client and server with an authorization server that is not ours; needs npm",
        run: login::command,
    },
    Command {
        name: "chaos",
        usage: "[--bridge | --gateway | --fleet] [--rounds N | --seconds N] [--seed N]",
        about: "a server behind `pintle bridge` that is killed N times (200), a gateway for N rounds (10) or at least N seconds, or three processes and their Redis for twice N seconds (300); `--seed` repeats a run",
        run: chaos::command,
    },
    Command {
        name: "fuzz",
        usage: "[target…] [--seconds N]",
        about: "every fuzz target for N seconds (20)",
        run: fuzz::command,
    },
    Command {
        name: "openapi",
        usage: "[--only text]",
        about: "thousands of OpenAPI documents as tools, and some of them beside FastMCP; needs npm and Python",
        run: openapi::command,
    },
    Command {
        name: "instructions",
        usage: "[--bless] [--only TEXT]",
        about: "what the hot paths cost in instructions, against the baseline; `--bless` makes a new one, `--only` counts the cases with a text in their names",
        run: instructions::command,
    },
    Command {
        name: "bench",
        usage: "[--quick | --peers | --bridge [--quick] | --gateway | --fleet | --serve | --command | --compile]",
        about: "what a request costs beside a bare server; rewrites the table in bench/README.md",
        run: bench::command,
    },
    Command {
        name: "rebuild",
        usage: "",
        about: "what a change costs to build, crates and sizes, beside other SDKs; rewrites the table in bench/README.md",
        run: rebuild::command,
    },
];

fn main() -> ExitCode {
    if let Some(code) = api::as_rustdoc() {
        return code;
    }
    let mut args = std::env::args().skip(1);
    let Some(name) = args.next() else {
        print!("{}", help());
        return ExitCode::SUCCESS;
    };
    let rest: Vec<String> = args.collect();
    if matches!(name.as_str(), "help" | "-h" | "--help") {
        print!("{}", help());
        return ExitCode::SUCCESS;
    }
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        eprint!("no such command: `{name}`\n\n{}", help());
        return ExitCode::from(2);
    };
    if command.usage.is_empty() && !rest.is_empty() {
        eprintln!("`cargo xtask {name}` takes no arguments, got `{}`", rest.join(" "));
        return ExitCode::from(2);
    }
    match (command.run)(&rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("\nfailed: {}", failure.what);
            eprintln!("repeat: {}", failure.repeat);
            ExitCode::FAILURE
        }
    }
}

fn help() -> String {
    let mut text = String::from("usage: cargo xtask <command>\n\n");
    for command in COMMANDS {
        let call = format!("{} {}", command.name, command.usage);
        text.push_str(&format!("  {:<32}{}\n", call.trim_end(), command.about));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_names_every_command() {
        let text = help();
        for command in COMMANDS {
            assert!(text.contains(&format!("  {}", command.name)), "{text}");
        }
    }
}
