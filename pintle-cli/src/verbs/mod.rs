//! The verbs: one file or folder each, with its arguments and a function that runs it.

mod auth;
mod bridge;
mod call;
mod check;
mod complete;
mod completions;
mod demo;
mod gateway;
mod hosts;
mod info;
mod ls;
pub(crate) mod man;
mod ping;
mod prompt;
mod raw;
mod read;
mod repl;
mod resume;
mod tour;
mod trace;
mod traffic;
mod watch;

use clap::Subcommand;

use crate::{args::TargetArgs, failure::Failure, output::Output, targets::Endpoint};
use auth::{login, logout, whoami};
use check::{doctor, lint, lock};
use hosts::{add, approve, rm, servers};
use traffic::{bench, replay, tap};

pub(crate) use repl::ReplArgs;
pub(crate) use watch::{describe_event, log_line};

/// A verb with its arguments.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Ls(ls::LsArgs),
    Call(call::CallArgs),
    Read(read::ReadArgs),
    Prompt(prompt::PromptArgs),
    Complete(complete::CompleteArgs),
    Resume(resume::ResumeArgs),
    Info(info::InfoArgs),
    Ping(ping::PingArgs),
    Watch(watch::WatchArgs),
    Raw(raw::RawArgs),
    Trace(trace::TraceArgs),
    Tap(tap::TapArgs),
    Replay(replay::ReplayArgs),
    Bench(bench::BenchArgs),
    Bridge(bridge::BridgeArgs),
    Gateway(gateway::GatewayArgs),
    Repl(repl::ReplArgs),
    Doctor(doctor::DoctorArgs),
    Lint(lint::LintArgs),
    Lock(lock::LockArgs),
    Diff(lock::diff::DiffArgs),
    Login(login::LoginArgs),
    Logout(logout::LogoutArgs),
    Whoami(whoami::WhoamiArgs),
    Auth(auth::ls::AuthArgs),
    Servers(servers::ServersArgs),
    Add(add::AddArgs),
    Rm(rm::RmArgs),
    Approve(approve::ApproveArgs),
    Demo(demo::DemoArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
    Tour(tour::TourArgs),
    /// Print the version
    #[command(hide = true)]
    Version,
}

impl Default for Verb {
    fn default() -> Self {
        Self::Tour(tour::TourArgs::default())
    }
}

impl Verb {
    /// Returns whether the verb connects to a server as a client, in this process.
    fn is_client(&self) -> bool {
        matches!(
            self,
            Self::Ls(_)
                | Self::Call(_)
                | Self::Read(_)
                | Self::Prompt(_)
                | Self::Complete(_)
                | Self::Resume(_)
                | Self::Info(_)
                | Self::Ping(_)
                | Self::Watch(_)
                | Self::Raw(_)
                | Self::Bench(_)
                | Self::Doctor(_)
                | Self::Lint(_)
                | Self::Lock(_)
                | Self::Diff(_)
        )
    }

    /// Returns whether the verb serves clients until it is told to stop.
    pub(crate) fn is_server(&self) -> bool {
        matches!(self, Self::Bridge(_) | Self::Demo(_) | Self::Gateway(_) | Self::Replay(_) | Self::Tap(_))
    }

    /// Returns whether the verb serves several clients at a time, or one whose calls are handled in this process.
    pub(crate) fn serves_many(&self) -> bool {
        match self {
            Self::Bridge(args) => args.serves_http(),
            Self::Demo(_) | Self::Gateway(_) | Self::Tap(_) => true,
            _ => false,
        }
    }

    /// Returns whether the verb receives signals itself: a tap may pass them on to a program.
    pub(crate) fn receives_signals(&self) -> bool {
        matches!(self, Self::Tap(_))
    }

    /// Returns whether the verb handles Ctrl-C itself.
    pub(crate) fn handles_signals(&self) -> bool {
        match self {
            Self::Tap(_) => true,
            Self::Gateway(args) => args.handles_signals(),
            Self::Repl(_) => true,
            _ => false,
        }
    }

    /// Returns the target and the words, if the verb is one of a line of `repl`.
    pub(crate) fn target_mut(&mut self) -> Option<&mut TargetArgs> {
        Some(match self {
            Self::Ls(args) => &mut args.target,
            Self::Call(args) => &mut args.target,
            Self::Read(args) => &mut args.target,
            Self::Prompt(args) => &mut args.target,
            Self::Complete(args) => &mut args.target,
            Self::Info(args) => &mut args.target,
            Self::Ping(args) => &mut args.target,
            Self::Watch(args) => &mut args.target,
            Self::Raw(args) => &mut args.target,
            Self::Lint(args) => &mut args.target,
            Self::Lock(args) => &mut args.target,
            Self::Diff(args) => &mut args.target,
            _ => return None,
        })
    }
}

/// Runs a verb.
pub(crate) async fn run(verb: Verb, output: &Output) -> Result<(), Failure> {
    match verb {
        Verb::Ls(args) => ls::run(args, output).await,
        Verb::Call(args) => call::run(args, output).await,
        Verb::Read(args) => read::run(args, output).await,
        Verb::Prompt(args) => prompt::run(args, output).await,
        Verb::Complete(args) => complete::run(args, output).await,
        Verb::Resume(args) => resume::run(args, output).await,
        Verb::Ping(args) => ping::run(args, output).await,
        Verb::Watch(args) => watch::run(args, output).await,
        Verb::Raw(args) => raw::run(args, output).await,
        // It runs another verb.
        Verb::Trace(args) => Box::pin(trace::run(args, output)).await,
        Verb::Tap(args) => tap::run(args, output).await,
        Verb::Replay(args) => replay::run(args, output).await,
        Verb::Bench(args) => bench::run(args, output).await,
        Verb::Bridge(args) => bridge::run(args, output).await,
        Verb::Gateway(args) => gateway::run(args, output).await,
        Verb::Info(args) => info::run(args, output).await,
        Verb::Doctor(args) => doctor::run(args, output).await,
        Verb::Lint(args) => lint::run(args, output).await,
        Verb::Lock(args) => lock::run(args, output).await,
        Verb::Diff(args) => lock::diff::run(args, output).await,
        Verb::Login(args) => login::run(args, output).await,
        Verb::Logout(args) => logout::run(args, output).await,
        Verb::Whoami(args) => whoami::run(args, output).await,
        Verb::Auth(args) => auth::ls::run(args, output).await,
        Verb::Servers(args) => servers::run(args, output).await,
        Verb::Add(args) => add::run(args, output),
        Verb::Rm(args) => rm::run(args, output),
        Verb::Approve(args) => approve::run(args, output).await,
        Verb::Demo(args) => demo::run(args, output).await,
        Verb::Completions(args) => completions::run(&args, output),
        // They need the whole command: the crate runs them.
        Verb::Man(_) | Verb::Repl(_) => Err(Failure::internal(&"a verb that is not run by itself")),
        Verb::Tour(args) => tour::run(args).await,
        Verb::Version => output.text(|text| {
            text.line(concat!("pintle ", env!("CARGO_PKG_VERSION")));
        }),
    }
}

/// Refuses words that a verb does not take.
fn no_more(words: &[String], endpoint: &Endpoint, verb: &str) -> Result<(), Failure> {
    endpoint.no_more(words, verb)
}
