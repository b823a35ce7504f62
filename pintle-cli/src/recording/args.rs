use std::path::PathBuf;

use clap::Args;

/// Options of a recording, which `trace` and `tap` have.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Recording")]
pub(crate) struct RecordArgs {
    /// Append the messages to this file, for you only, instead of printing them to standard error
    #[arg(long = "output", short = 'o', value_name = "FILE")]
    pub(super) file: Option<PathBuf>,
    /// Redact the arguments of tools, prompts and completions too
    #[arg(long)]
    pub(super) redact_arguments: bool,
}
