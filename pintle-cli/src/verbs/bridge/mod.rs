//! `pintle bridge`: any server, to any client.

mod pending;
mod programs;

use clap::Args;
use pintle::{Server, proto::Limits};
use pintle_relay::Relay;

use self::{pending::PendingTarget, programs::ProgramArgs};
use crate::{
    args::{HELP, LogArgs, TargetArgs, examples, message_limits, message_size},
    auth::BackgroundLogin,
    failure::{Exit, Failure},
    listen::{ENDPOINT, ListenArgs, Listening, raise_open_files},
    output::Output,
    targets::{Endpoint, ProgramStarts, ResolvedTarget},
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
    /// Print the address of the login page, and do not open it
    #[arg(long)]
    no_browser: bool,
    /// The most bytes of a message, in both directions; the default is 16MiB
    #[arg(long, value_name = "SIZE", value_parser = message_size)]
    max_message: Option<usize>,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    programs: ProgramArgs,
    #[command(flatten)]
    listen: ListenArgs,
    #[command(flatten)]
    log: LogArgs,
}

impl BridgeArgs {
    pub(super) fn serves_http(&self) -> bool {
        self.http.is_some()
    }
}

pub(super) async fn run(args: BridgeArgs, output: &Output) -> Result<(), Failure> {
    let BridgeArgs { target, http, no_browser, max_message, programs, listen, log } = args;
    let (endpoint, words) = Endpoint::take("bridge", target)?;
    endpoint.no_more(&words, "bridge")?;
    if let Some(option) = listen.given().filter(|_| http.is_none()) {
        let message = format!("`{option}` is an option of `--http`");
        return Err(Failure::usage(message, "pintle bridge --help"));
    }
    if http.is_none() && !output.takes_bytes() {
        // What the server sends would reach the terminal as it is.
        let message = "standard output is a terminal, and a bridge speaks to a host there: give it `--http`";
        return Err(Failure::usage(message, endpoint.line("repl", &[])));
    }
    log.start(output)?;
    let target = endpoint.resolved(output).await?;
    programs.check(&target)?;
    let listening = match &http {
        Some(address) => Some(listen.listen(address, "bridge").await?),
        None => None,
    };
    if listening.is_some() && matches!(target, ResolvedTarget::Url(_)) {
        raise_open_files();
    }
    let is_public = listening.as_ref().is_some_and(Listening::is_open_to_all);
    if is_public {
        endpoint.not_for_everybody(&endpoint.label(), endpoint.has_login(&target), "bridge")?;
    }
    // Nobody logs in for everybody.
    let login = match is_public {
        true => None,
        false => endpoint.background_login(&target, no_browser, output)?,
    };
    // Programs of this machine belong to one user.
    let shares = listening.as_ref().is_some_and(Listening::is_open_to_local);
    let starts = programs.starts();
    let limits = message_limits(max_message);
    let bridge = Bridge { endpoint, target, login, programs, starts, shares, limits };
    let (server, pending) = bridge.open(output).await?;
    let serving = bridge.serve(&server, listening, output);
    let served = match pending {
        None => serving.await,
        Some(pending) => tokio::select! {
            served = serving => served,
            never = bridge.connect_later(&pending, &server, output) => match never {},
        },
    };
    drop(server);
    bridge.starts.all_gone().await;
    served
}

/// A target, and how it is served.
struct Bridge {
    endpoint: Endpoint,
    target: ResolvedTarget,
    login: Option<BackgroundLogin>,
    programs: ProgramArgs,
    starts: ProgramStarts,
    /// Whether anonymous clients share connections.
    shares: bool,
    limits: Limits,
}

impl Bridge {
    /// Connects to the target. If that takes a login of the user, the server offers nothing until then.
    async fn open(&self, output: &Output) -> Result<(Server, Option<PendingTarget>), Failure> {
        match self.connect(output).await {
            Ok(relay) => Ok((relay.into_server().limits(self.limits.clone()), None)),
            Err(failure) => {
                let waiting = self.login.as_ref().filter(|login| login.waiting().is_some());
                let login = waiting.ok_or(failure)?.clone();
                let pending = PendingTarget::new(self.endpoint.label(), login);
                Ok((pending.server().limits(self.limits.clone()), Some(pending)))
            }
        }
    }

    async fn connect(&self, output: &Output) -> Result<Relay, Failure> {
        let client = self.endpoint.client(output).limits(self.limits.clone());
        let (target, login) = (self.target.clone(), self.login.clone());
        let relay = self.endpoint.relay(target, client, login, self.starts.clone(), output).await?;
        let relay = if self.shares { relay.share_anonymous() } else { relay };
        Ok(self.programs.limited(&self.target, relay))
    }

    async fn serve(
        &self,
        server: &Server,
        listening: Option<Listening>,
        output: &Output,
    ) -> Result<(), Failure> {
        match listening {
            Some(listening) => {
                listening.announce(ENDPOINT, output)?;
                listening.serve_server(server, output).await
            }
            None => server.serve_stdio().await.map_err(|error| {
                let message = format!("the bridge failed: {error}");
                Failure::new(Exit::Server, message, self.endpoint.line("doctor", &[]))
            }),
        }
    }

    /// Connects to the target when its user has logged in, and adds what it offers to the server.
    async fn connect_later(
        &self,
        pending: &PendingTarget,
        server: &Server,
        output: &Output,
    ) -> std::convert::Infallible {
        loop {
            pending.wanted().await;
            let failure = match self.connect(output).await {
                Ok(relay) => match server.add_provider(relay.forward_unlisted()) {
                    Ok(()) => {
                        pending.set_connected();
                        return std::future::pending().await;
                    }
                    Err(error) => Failure::internal(&error),
                },
                Err(failure) => failure,
            };
            output.detail(failure.message.as_str());
            pending.set_failed(failure.message);
        }
    }
}
