use std::time::Duration;

use clap::Args;
use pintle_relay::Relay;

use crate::{
    args::duration,
    failure::Failure,
    targets::{ProgramLimits, ProgramStarts, ResolvedTarget},
};

/// Options of programs behind a bridge.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Programs")]
pub(super) struct ProgramArgs {
    /// Start one program for all clients, instead of one for each session; it cannot ask them
    #[arg(long)]
    shared: bool,
    /// End the program of a session that has not called for this time; the default is 10m
    #[arg(long, value_name = "TIME", value_parser = duration)]
    idle: Option<Duration>,
    /// End a program of this age, between two calls; the default is 24h
    #[arg(long, value_name = "TIME", value_parser = duration)]
    lifetime: Option<Duration>,
    /// How many programs may run at the same time; the default is 64
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..))]
    max_programs: Option<u16>,
    /// How long a call waits for a program when all are in use; the default is 5s
    #[arg(long, value_name = "TIME", value_parser = duration)]
    max_wait: Option<Duration>,
}

impl ProgramArgs {
    /// Refuses options that would be ignored.
    pub(super) fn check(&self, target: &ResolvedTarget) -> Result<(), Failure> {
        let Self { shared, idle, lifetime, max_programs, max_wait } = self;
        let options = [
            ("--shared", *shared),
            ("--idle", idle.is_some()),
            ("--lifetime", lifetime.is_some()),
            ("--max-programs", max_programs.is_some()),
            ("--max-wait", max_wait.is_some()),
        ];
        match options.into_iter().find(|(_, given)| *given) {
            Some((option, _)) if !matches!(target, ResolvedTarget::Program(_)) => {
                let message = format!("`{option}` is an option of a program: leave it out");
                Err(Failure::usage(message, "pintle bridge --help"))
            }
            _ => Ok(()),
        }
    }

    fn limits(&self) -> ProgramLimits {
        let Self { idle, lifetime, max_programs, max_wait, .. } = *self;
        ProgramLimits { idle, lifetime, max_programs, max_wait }
    }

    pub(super) fn starts(&self) -> ProgramStarts {
        self.limits().starts("`--max-programs`")
    }

    /// Returns a relay to the target with these limits.
    pub(super) fn limited(&self, target: &ResolvedTarget, relay: Relay) -> Relay {
        let relay = if self.shared { relay.share_connection() } else { relay };
        self.limits().limited(target, relay)
    }
}
