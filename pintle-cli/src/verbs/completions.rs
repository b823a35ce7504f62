use clap::{Args, ValueEnum};

use crate::{
    args::{HELP, examples},
    failure::Failure,
    output::Output,
};

/// Print the script that lets a shell complete words of this command
#[derive(Args, Debug)]
#[command(
    before_help = examples(&[
        ("source <(pintle completions bash)", "in ~/.bashrc"),
        ("source <(pintle completions zsh)", "in ~/.zshrc, after `compinit`"),
        ("pintle completions fish | source", "in ~/.config/fish/config.fish"),
    ]),
    help_template = HELP,
)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// The shells whose completion is supported.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    // No doc comments: clap would print a longer help with them.
    Bash,
    Zsh,
    Fish,
}

pub(super) fn run(args: &CompletionsArgs, output: &Output) -> Result<(), Failure> {
    let script = match args.shell {
        Shell::Bash => include_str!("completions/pintle.bash"),
        Shell::Zsh => include_str!("completions/pintle.zsh"),
        Shell::Fish => include_str!("completions/pintle.fish"),
    };
    output.text(|text| {
        text.block(script);
    })
}
