//! Which core is whose: the generator and what it measures do not share one, where there are two.

/// One core for us, and one for what is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cores {
    ours: usize,
    theirs: usize,
}

impl Cores {
    /// Keeps this thread to a core of its own, if another one is left.
    pub(crate) fn part() -> Option<Self> {
        let mut allowed = allowed().into_iter();
        let this = Self { ours: allowed.next()?, theirs: allowed.next()? };
        keep_to(this.ours).then_some(this)
    }

    /// Does something on the other core; a process that is started there stays there.
    pub(crate) fn over_there<T>(self, what: impl FnOnce() -> T) -> T {
        keep_to(self.theirs);
        let done = what();
        keep_to(self.ours);
        done
    }

    /// The words before a command that start it on the other core.
    pub(crate) fn prefix(self) -> [String; 3] {
        ["taskset".to_owned(), "-c".to_owned(), self.theirs.to_string()]
    }
}

#[cfg(target_os = "linux")]
fn allowed() -> Vec<usize> {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else { return Vec::new() };
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()
}

#[cfg(target_os = "linux")]
fn keep_to(core: usize) -> bool {
    let mut set = rustix::thread::CpuSet::new();
    set.set(core);
    rustix::thread::sched_setaffinity(None, &set).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn allowed() -> Vec<usize> {
    Vec::new()
}

#[cfg(not(target_os = "linux"))]
fn keep_to(_: usize) -> bool {
    false
}
