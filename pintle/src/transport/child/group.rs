use std::sync::atomic::{AtomicBool, Ordering};

/// The process group of a child: all that it started and that did not leave on purpose.
///
/// Its number may be used again by the system once it is empty, so nothing is sent to it after that was seen.
#[derive(Debug)]
pub(super) struct Group {
    #[cfg_attr(
        not(unix),
        expect(dead_code, reason = "there are no groups; the process is ended by its handle")
    )]
    leader: u32,
    over: AtomicBool,
}

impl Group {
    pub(super) fn of(leader: u32) -> Self {
        Self { leader, over: AtomicBool::new(false) }
    }

    /// Nothing is left, or all that is left was killed.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    pub(super) fn set_over(&self) {
        self.over.store(true, Ordering::Release);
    }
}

#[cfg(unix)]
mod signals {
    use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

    use super::Group;

    impl Group {
        /// Whether there is someone to signal.
        pub(in super::super) fn is_alive(&self) -> bool {
            !self.is_over() && self.id().is_some_and(|group| test_kill_process_group(group).is_ok())
        }

        pub(in super::super) fn terminate(&self) {
            self.signal(Signal::TERM);
        }

        pub(in super::super) fn kill(&self) {
            self.signal(Signal::KILL);
        }

        fn signal(&self, signal: Signal) {
            if let Some(group) = self.id().filter(|_| !self.is_over()) {
                // It fails if nobody is left, which is what we want.
                let _ = kill_process_group(group, signal);
            }
        }

        fn id(&self) -> Option<Pid> {
            Pid::from_raw(i32::try_from(self.leader).ok()?)
        }
    }
}

#[cfg(not(unix))]
impl Group {
    pub(super) fn is_alive(&self) -> bool {
        false
    }

    pub(super) fn terminate(&self) {}

    pub(super) fn kill(&self) {}
}
