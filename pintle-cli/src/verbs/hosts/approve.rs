use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::{
    args::{HELP, examples, quoted},
    failure::Failure,
    output::Output,
    targets::UntrustedFile,
};

/// Allow the servers of a project's configuration file
#[derive(Args, Debug)]
#[command(
    before_help = examples(&[
        ("pintle approve .mcp.json", "show what it starts and connects to, and ask"),
        ("pintle approve .mcp.json --yes", "without asking, in a script"),
        ("pintle approve .mcp.json --revoke", ""),
    ]),
    help_template = HELP,
    override_usage = "pintle approve FILE",
)]
pub(crate) struct ApproveArgs {
    #[arg(value_name = "FILE", hide = true)]
    file: PathBuf,
    /// Approve without asking
    #[arg(long, short)]
    yes: bool,
    /// Forget the approvals of the file
    #[arg(long, conflicts_with = "yes")]
    revoke: bool,
}

pub(crate) async fn run(args: ApproveArgs, output: &Output) -> Result<(), Failure> {
    let ApproveArgs { file: path, yes, revoke } = args;
    let shown = quoted(&path.to_string_lossy());
    if revoke {
        let revoked = UntrustedFile::revoke(&path)?;
        return output.result(&json!({ "file": path.to_string_lossy(), "revoked": revoked }), |text| {
            text.line(if revoked { "revoked" } else { "the file was not approved" });
        });
    }
    let (_, file) = UntrustedFile::read(&path)
        .map_err(|error| Failure::usage(error.to_string(), format!("ls -l {shown}")))?;
    if !yes && !file.is_approved() {
        file.ask("has these servers:", &format!("pintle approve {shown} --yes"), output).await?;
    }
    file.approve()?;
    let mut json = file.to_json();
    json["approved"] = true.into();
    output.result(&json, |text| {
        text.line("approved:");
        for line in file.review() {
            text.add("  ").line(line);
        }
    })
}
