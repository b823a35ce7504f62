use std::path::PathBuf;

use clap::Args;

/// Options for what servers ask, which every verb has whose server may ask.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Questions of the server")]
pub(crate) struct QuestionArgs {
    /// The answer to a field of a form; also `NAME:=JSON` and `NAME@FILE`
    #[arg(long = "answer", value_name = "NAME=VALUE")]
    pub(crate) answers: Vec<String>,
    /// A JSON object with answers; `-` is standard input
    #[arg(long = "answers", value_name = "FILE")]
    pub(crate) file: Option<String>,
    /// Decline every form and every page
    #[arg(long, conflicts_with_all = ["answers", "file"])]
    pub(crate) decline: bool,
    /// Never prompt, even on a terminal
    #[arg(long)]
    pub(crate) no_input: bool,
    /// Print the URLs of pages and open none
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// A command for requests to a model: the request as JSON on its standard input, a text or a message as JSON on its output
    #[arg(long, value_name = "COMMAND")]
    pub(crate) sample_with: Option<String>,
    /// A directory that the server may work in
    #[arg(long = "root", value_name = "DIR")]
    pub(crate) roots: Vec<PathBuf>,
}
