use std::io::{self, IsTerminal as _};

use clap::Args;
use pintle::server::StateKeys;

use crate::{
    args::{HELP, LogArgs, examples},
    demo::{Harbour, server},
    failure::{Exit, Failure},
    listen::{ENDPOINT, ListenArgs},
    output::Output,
};

/// Serve the demo server, for any client
#[derive(Args, Debug)]
#[command(
    before_help = examples(&[
        ("pintle demo", "on standard input and output"),
        ("pintle demo --http", "at http://127.0.0.1:8000/mcp"),
        ("pintle demo --http 127.0.0.1:0", "at a free port"),
    ]),
    help_template = HELP,
)]
pub(crate) struct DemoArgs {
    /// Serve HTTP at this address, until Ctrl-C, and print the URL
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:8000")]
    http: Option<String>,
    /// Seal the states of calls with a key of this process, as servers do by default: they cannot be resumed in another one
    #[arg(long, hide = true)]
    own_key: bool,
    #[command(flatten)]
    listen: ListenArgs,
    #[command(flatten)]
    log: LogArgs,
}

pub(super) async fn run(args: DemoArgs, output: &Output) -> Result<(), Failure> {
    let mut server = server(&Harbour::default());
    if args.own_key {
        server = server.state_keys(StateKeys::random());
    }
    let Some(address) = args.http else {
        if let Some(option) = args.listen.given() {
            let message = format!("`{option}` is an option of `--http`");
            return Err(Failure::usage(message, "pintle demo --help"));
        }
        if io::stdin().is_terminal() {
            output.note(
                "the demo server speaks MCP on standard input and output: start it from a client, or press Ctrl-D",
            );
        }
        args.log.start(output)?;
        let failed =
            |error| Failure::new(Exit::Server, format!("the demo server failed: {error}"), "pintle ls demo");
        return server.serve_stdio().await.map_err(failed);
    };
    args.log.start(output)?;
    let listening = args.listen.listen(&address, "demo").await?;
    listening.announce(ENDPOINT, output)?;
    listening.serve_server(&server, output).await
}
