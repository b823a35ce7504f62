use clap::Args;

use crate::{
    args::{HELP, TargetArgs, examples},
    failure::{Exit, Failure},
    listen::{ENDPOINT, ListenArgs},
    output::Output,
    targets::Endpoint,
};

/// Serve any server to clients that cannot reach it themselves: on standard input and output, or over HTTP
#[derive(Args, Debug)]
#[command(
    before_help = examples(&[
        ("pintle bridge https://example.com/mcp", "the command to configure in a host that only starts programs"),
        ("pintle bridge --http 127.0.0.1:8000 -- uvx mcp-server-git", "a program, at http://127.0.0.1:8000/mcp"),
        ("pintle bridge --http 0.0.0.0:8000 git", "for other machines, which send the token that is printed"),
    ]),
    help_template = HELP,
    override_usage = "pintle bridge [OPTIONS] TARGET\n       pintle bridge [OPTIONS] -- PROGRAM [ARGS]...",
)]
pub(crate) struct BridgeArgs {
    /// Serve HTTP at this address, until Ctrl-C, and print the URL; otherwise standard input and output
    #[arg(long, value_name = "ADDRESS")]
    http: Option<String>,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    listen: ListenArgs,
}

pub(super) async fn run(args: BridgeArgs, output: &Output) -> Result<(), Failure> {
    let BridgeArgs { target, http, listen } = args;
    let (endpoint, words) = Endpoint::take("bridge", target)?;
    endpoint.no_more(&words, "bridge")?;
    if let Some(option) = listen.given().filter(|_| http.is_none()) {
        let message = format!("`{option}` is an option of `--http`");
        return Err(Failure::usage(message, "pintle bridge --help"));
    }
    let relay = endpoint.relay(endpoint.client(output), output).await?;
    let Some(address) = http else {
        let failed = |error| {
            Failure::new(Exit::Server, format!("the bridge failed: {error}"), endpoint.line("doctor", &[]))
        };
        return relay.into_server().serve_stdio().await.map_err(failed);
    };
    let listening = listen.listen(&address, "bridge").await?;
    // Programs of this machine belong to one user.
    let relay = if listening.is_open_to_local() { relay.share_anonymous() } else { relay };
    listening.announce(ENDPOINT, output)?;
    listening.serve_server(&relay.into_server()).await
}
