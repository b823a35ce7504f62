use std::sync::atomic::{AtomicBool, Ordering};

/// The process group of a child: every process that it started and that did not leave the group.
///
/// The system may reuse the id of an empty group, so no signal is sent after it was seen empty.
#[derive(Debug)]
pub(super) struct ProcessGroup {
    #[cfg_attr(
        not(unix),
        expect(dead_code, reason = "there are no groups; the process is ended by its handle")
    )]
    leader: u32,
    over: AtomicBool,
}

impl ProcessGroup {
    pub(super) fn of(leader: u32) -> Self {
        Self { leader, over: AtomicBool::new(false) }
    }

    /// Whether the group is empty, or all of it was killed.
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

    use super::ProcessGroup;

    impl ProcessGroup {
        /// Whether someone is left who can be asked to go.
        pub(in super::super) fn is_alive(&self) -> bool {
            if self.is_over() {
                return false;
            }
            let Some(group) = self.id() else { return false };
            if test_kill_process_group(group).is_ok() {
                if has_living(group) {
                    return true;
                }
                // One that was born while we looked is not missed; the dead do not mind.
                self.kill();
            }
            self.set_over();
            false
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

    /// Whether not all that are left are dead. In many containers nobody collects orphans: they stay in their group for
    /// ever, and it would seem as if they ignored every signal.
    #[cfg(target_os = "linux")]
    fn has_living(group: Pid) -> bool {
        let Ok(processes) = std::fs::read_dir("/proc") else { return true };
        let numbered = processes
            .flatten()
            .filter(|process| process.file_name().as_encoded_bytes().first().is_some_and(u8::is_ascii_digit));
        let mut stats = numbered.map(|process| std::fs::read_to_string(process.path().join("stat")));
        stats.any(|stat| stat.is_ok_and(|stat| is_living_member(&stat, group)))
    }

    /// Reads `<pid> (<name>) <state> <parent> <group> …`. The name may hold anything.
    #[cfg(target_os = "linux")]
    fn is_living_member(stat: &str, group: Pid) -> bool {
        let Some((_, rest)) = stat.rsplit_once(") ") else { return false };
        let mut fields = rest.split(' ');
        let state = fields.next();
        let member = fields.nth(1).and_then(|field| field.parse().ok()) == Some(group.as_raw_nonzero().get());
        member && !matches!(state, Some("Z" | "X"))
    }

    #[cfg(not(target_os = "linux"))]
    fn has_living(_: Pid) -> bool {
        true
    }
}

#[cfg(not(unix))]
impl ProcessGroup {
    pub(super) fn is_alive(&self) -> bool {
        false
    }

    pub(super) fn terminate(&self) {}

    pub(super) fn kill(&self) {}
}
