use std::time::Duration;

use pintle_relay::Relay;

use super::{ProgramStarts, ResolvedTarget};

/// How long a connection without a call is kept, if nothing else is given.
const IDLE: Duration = Duration::from_secs(600);
/// The age of a connection at which another takes its place.
const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
/// The number of programs that run at the same time.
const MAX_PROGRAMS: usize = 64;
/// How long a caller waits for a program or connection when all are in use.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// The limits of the programs of a target, where they are given.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProgramLimits {
    pub(crate) idle: Option<Duration>,
    pub(crate) lifetime: Option<Duration>,
    pub(crate) max_programs: Option<u16>,
    pub(crate) max_wait: Option<Duration>,
}

impl ProgramLimits {
    /// Returns the slots of the programs, with the option that sets their number.
    pub(crate) fn starts(&self, option: &'static str) -> ProgramStarts {
        let starts = ProgramStarts::new(self.max_programs.map_or(MAX_PROGRAMS, usize::from), option);
        starts.max_wait(self.max_wait.unwrap_or(MAX_WAIT))
    }

    /// Returns a relay to the target whose programs have these limits.
    pub(crate) fn limited(&self, target: &ResolvedTarget, relay: Relay) -> Relay {
        match target {
            ResolvedTarget::Program(_) => self.limited_connections(target, relay),
            ResolvedTarget::InProcess(_) | ResolvedTarget::Url(_) => relay,
        }
    }

    /// Returns a relay to the target whose programs have these limits, and its connections to a URL.
    pub(crate) fn limited_connections(&self, target: &ResolvedTarget, relay: Relay) -> Relay {
        match target {
            ResolvedTarget::Program(_) | ResolvedTarget::Url(_) => {
                relay.idle_timeout(self.idle.unwrap_or(IDLE)).max_lifetime(self.lifetime.unwrap_or(LIFETIME))
            }
            ResolvedTarget::InProcess(_) => relay,
        }
    }
}
