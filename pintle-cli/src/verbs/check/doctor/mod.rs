//! A diagnosis of a server, step by step.

mod network;
mod program;
mod protocol;
mod report;

use clap::Args;

use crate::{
    args::{HELP, TargetArgs, examples},
    failure::{Exit, Failure},
    output::Output,
    targets::{Destination, Endpoint},
};
use report::Report;

/// Find out why a server does not work, step by step
#[derive(Args, Debug)]
#[command(
    before_help = examples(&[
        ("pintle doctor https://example.com/mcp", "name, connection, TLS, status, documents, login, protocol"),
        ("pintle doctor -- uvx mcp-server-git", "program, environment, start, output, protocol"),
        ("pintle doctor git --json", "a server that a host has configured"),
    ]),
    help_template = HELP,
    override_usage = "pintle doctor TARGET",
)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    target: TargetArgs,
}

pub(crate) async fn run(args: DoctorArgs, output: &Output) -> Result<(), Failure> {
    let (endpoint, words) = Endpoint::take("doctor", args.target)?;
    endpoint.no_more(&words, "doctor")?;
    let mut report = Report::new(output);
    let destination = endpoint.destination(output).await?;
    let is_program = matches!(destination, Destination::Program { .. });
    let goes_on = match destination {
        Destination::InProcess => true,
        Destination::Program { program, cwd, variables } => {
            program::check(&program, cwd.as_deref(), &variables, &mut report)
        }
        Destination::Url { url, token } => {
            network::check(&url, token, &endpoint.line("login", &[]), &mut report).await
        }
    };
    if goes_on {
        protocol::check(&endpoint, is_program, output, &mut report).await;
    }
    if output.is_structured() {
        output.result(&report.to_json(), |_| {})?;
    }
    match report.failures() {
        0 => Ok(()),
        failures => {
            let message =
                if failures == 1 { "1 step failed".to_owned() } else { format!("{failures} steps failed") };
            Err(Failure::new(Exit::Findings, message, report.next().unwrap_or_default()))
        }
    }
}
