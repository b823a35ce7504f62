use clap::Args;

use crate::{
    args::{HELP, examples},
    failure::Failure,
    output::own_stdout,
    tour::{self, Length},
};

/// Show the messages between a server and a client, chapter by chapter
#[derive(Args, Debug, Default)]
#[command(
    before_help = examples(&[
        ("pintle", "the tour, a few screens a chapter"),
        ("pintle tour --all", "all chapters, in both eras, with whole messages"),
        ("pintle tour --all | less -R", "page by page"),
    ]),
    help_template = HELP,
)]
pub(crate) struct TourArgs {
    /// Show all chapters, in both eras, with whole messages
    #[arg(long)]
    all: bool,
}

pub(super) async fn run(args: TourArgs) -> Result<(), Failure> {
    let length = if args.all { Length::All } else { Length::Short };
    let (mut out, paint) = own_stdout();
    match tour::run(&mut out, paint, length).await {
        Ok(()) => Ok(()),
        Err(pintle::Error::Io(error)) => Err(Failure::unwritten(&error)),
        Err(error) => Err(Failure::internal(&error)),
    }
}
