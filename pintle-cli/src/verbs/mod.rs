//! The verbs: one file or folder each, with its arguments and a function that runs it, and one row of a table.

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

/// Defines [`Verb`] by a row for each: its arguments, its kind, and how it runs.
///
/// A `client` connects to a server, in this process; so does a `line`, which is a verb of the lines of `repl` too, with its target in
/// `args.target`.
macro_rules! verbs {
    (|$args:ident, $output:ident| $($verb:ident($type:ty) $kind:ident => $run:expr;)*) => {
        /// A verb with its arguments.
        #[derive(Debug, Subcommand)]
        pub(crate) enum Verb {
            $($verb($type),)*
            /// Print the version
            #[command(hide = true)]
            Version,
        }

        impl Verb {
            /// Returns whether the verb connects to a server as a client, in this process.
            fn is_client(&self) -> bool {
                match self {
                    $(Self::$verb(_) => verbs!(@is_client $kind),)*
                    Self::Version => false,
                }
            }

            /// Returns the target and the words, if the verb is one of a line of `repl`.
            pub(crate) fn target_mut(&mut self) -> Option<&mut TargetArgs> {
                $(verbs!(@target $kind self $verb);)*
                None
            }
        }

        /// Runs a verb.
        pub(crate) async fn run(verb: Verb, $output: &Output) -> Result<(), Failure> {
            match verb {
                $(Verb::$verb($args) => $run,)*
                Verb::Version => $output.text(|text| {
                    text.line(concat!("pintle ", env!("CARGO_PKG_VERSION")));
                }),
            }
        }
    };
    (@is_client other) => { false };
    (@is_client $client:ident) => { true };
    (@target line $this:ident $verb:ident) => {
        if let Self::$verb(args) = $this {
            return Some(&mut args.target);
        }
    };
    (@target $other:ident $this:ident $verb:ident) => {};
}

verbs! {
    |args, output|
    Ls(ls::LsArgs) line => ls::run(args, output).await;
    Call(call::CallArgs) line => call::run(args, output).await;
    Read(read::ReadArgs) line => read::run(args, output).await;
    Prompt(prompt::PromptArgs) line => prompt::run(args, output).await;
    Complete(complete::CompleteArgs) line => complete::run(args, output).await;
    Resume(resume::ResumeArgs) client => resume::run(args, output).await;
    Info(info::InfoArgs) line => info::run(args, output).await;
    Ping(ping::PingArgs) line => ping::run(args, output).await;
    Watch(watch::WatchArgs) line => watch::run(args, output).await;
    Raw(raw::RawArgs) line => raw::run(args, output).await;
    // It runs another verb.
    Trace(trace::TraceArgs) other => Box::pin(trace::run(args, output)).await;
    Tap(tap::TapArgs) other => tap::run(args, output).await;
    Replay(replay::ReplayArgs) other => replay::run(args, output).await;
    Bench(bench::BenchArgs) client => bench::run(args, output).await;
    Bridge(bridge::BridgeArgs) other => bridge::run(args, output).await;
    Gateway(gateway::GatewayArgs) other => gateway::run(args, output).await;
    Repl(repl::ReplArgs) other => not_by_itself(args);
    Doctor(doctor::DoctorArgs) client => doctor::run(args, output).await;
    Lint(lint::LintArgs) line => lint::run(args, output).await;
    Lock(lock::LockArgs) line => lock::run(args, output).await;
    Diff(lock::diff::DiffArgs) line => lock::diff::run(args, output).await;
    Login(login::LoginArgs) other => login::run(args, output).await;
    Logout(logout::LogoutArgs) other => logout::run(args, output).await;
    Whoami(whoami::WhoamiArgs) other => whoami::run(args, output).await;
    Auth(auth::ls::AuthArgs) other => auth::ls::run(args, output).await;
    Servers(servers::ServersArgs) other => servers::run(args, output).await;
    Add(add::AddArgs) other => add::run(args, output);
    Rm(rm::RmArgs) other => rm::run(args, output);
    Approve(approve::ApproveArgs) other => approve::run(args, output).await;
    Demo(demo::DemoArgs) other => demo::run(args, output).await;
    Completions(completions::CompletionsArgs) other => completions::run(&args, output);
    Man(man::ManArgs) other => not_by_itself(args);
    Tour(tour::TourArgs) other => tour::run(args).await;
}

impl Default for Verb {
    fn default() -> Self {
        Self::Tour(tour::TourArgs::default())
    }
}

impl Verb {
    /// Returns whether the verb serves clients until it is stopped.
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
}

/// Refuses to run a verb that the crate runs, because it needs the whole command.
fn not_by_itself<T>(_: T) -> Result<(), Failure> {
    Err(Failure::internal(&"a verb that is not run by itself"))
}

/// Refuses words that a verb does not take.
fn no_more(words: &[String], endpoint: &Endpoint, verb: &str) -> Result<(), Failure> {
    endpoint.no_more(words, verb)
}
