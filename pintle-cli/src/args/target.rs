use clap::Args;

use super::ConnectArgs;

/// The words of a verb, the first of which is its target, and the options of the connection.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct TargetArgs {
    #[arg(value_name = "TARGET", hide = true)]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}
