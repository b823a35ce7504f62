use std::{
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use pintle::transport::{Exit, Stage};
use tokio::{
    sync::Notify,
    time::{Instant, timeout},
};

/// The time after its start in which the exit of a program counts as a failure.
const UNSTABLE: Duration = Duration::from_secs(10);
/// Failures in a row after which there is no delay.
const FREE_FAILURES: u32 = 3;
/// The delay after the next one. It doubles with each.
const FIRST_DELAY: Duration = Duration::from_millis(500);
const MAX_DELAY: Duration = Duration::from_secs(30);

/// How long to wait for programs to end: each stage of a shutdown takes two seconds.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// The programs behind a bridge: how many run, and when the next may be started. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct ProgramStarts {
    limit: usize,
    state: Arc<Mutex<StartState>>,
    /// Notified when a program is gone.
    gone: Arc<Notify>,
}

#[derive(Debug, Default)]
struct StartState {
    running: usize,
    /// The number of programs in a row that exited soon after their start.
    failures: u32,
    /// When the next program may be started, and how the last one exited.
    delay: Option<(Instant, Exit)>,
}

impl ProgramStarts {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, state: Arc::default(), gone: Arc::default() }
    }

    /// Returns whether a program runs, or another value may start one.
    pub(crate) fn is_used(&self) -> bool {
        Arc::strong_count(&self.state) > 1
    }

    /// Waits until no program runs, for a limited time.
    pub(crate) async fn all_gone(&self) {
        let gone = async {
            loop {
                let notified = self.gone.notified();
                if lock(&self.state).running == 0 {
                    return;
                }
                notified.await;
            }
        };
        // Those that are left are killed when the process ends.
        let _ = timeout(MAX_WAIT, gone).await;
    }

    /// Takes the slot of a program that is about to be started.
    ///
    /// # Errors
    ///
    /// All slots are taken: [`io::ErrorKind::ResourceBusy`], which a relay reports as overload. Or programs have exited soon after
    /// their start, and the next one has to wait.
    pub(super) fn begin(&self) -> io::Result<ProgramSlot> {
        let mut state = lock(&self.state);
        if state.running >= self.limit {
            let message = format!(
                "{} programs are running behind this bridge, which is the limit: end a session, or start the bridge with a larger \
                 `--max-programs`",
                self.limit
            );
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, message));
        }
        let now = Instant::now();
        if let Some((until, exit)) = state.delay.filter(|(until, _)| *until > now) {
            let (failures, wait) = (state.failures, until - now);
            return Err(io::Error::other(format!(
                "the program was started {failures} times and {exit} each time within {UNSTABLE:?}; it is started again in {wait:.1?}"
            )));
        }
        state.running += 1;
        Ok(ProgramSlot { state: self.state.clone(), gone: self.gone.clone(), started: now })
    }
}

/// The slot of a program. It is free again when this is dropped.
#[derive(Debug)]
pub(super) struct ProgramSlot {
    state: Arc<Mutex<StartState>>,
    gone: Arc<Notify>,
    started: Instant,
}

impl ProgramSlot {
    /// Notes how the program ended. One that exits by itself soon after its start delays the next one.
    pub(super) fn ended(&self, exit: &Exit) {
        let mut state = lock(&self.state);
        if exit.stage == Stage::Exited && !is_killed(exit) && self.started.elapsed() < UNSTABLE {
            state.failures = state.failures.saturating_add(1);
            state.delay = delay_after(state.failures).map(|delay| (Instant::now() + delay, *exit));
        } else if self.started.elapsed() >= UNSTABLE {
            state.failures = 0;
        }
    }
}

impl Drop for ProgramSlot {
    fn drop(&mut self) {
        lock(&self.state).running -= 1;
        self.gone.notify_waiters();
    }
}

/// Returns the delay after this number of failures.
fn delay_after(failures: u32) -> Option<Duration> {
    let more = failures.checked_sub(FREE_FAILURES + 1)?;
    Some(MAX_DELAY.min(FIRST_DELAY * 2_u32.pow(more.min(16))))
}

/// Whether somebody has killed it: that is no failure of the program.
fn is_killed(exit: &Exit) -> bool {
    #[cfg(unix)]
    return exit.status.and_then(|status| std::os::unix::process::ExitStatusExt::signal(&status)) == Some(9);
    #[cfg(not(unix))]
    {
        let _ = exit;
        false
    }
}

fn lock(state: &Mutex<StartState>) -> MutexGuard<'_, StartState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::sync::mpsc;

    use pintle::transport::Child;
    use tokio::time::advance;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Returns how a process that runs a script exited.
    fn exit(script: &str) -> Exit {
        let (sender, exited) = mpsc::channel();
        let script = script.to_owned();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let child = Child::command("sh").args(["-c", &script]).spawn().unwrap();
                // By itself, before it is asked to.
                while child.exit_status().is_none() {
                    tokio::task::yield_now().await;
                }
                sender.send(child.shutdown().await).unwrap();
            });
        });
        exited.recv().unwrap()
    }

    #[test]
    fn a_slot_is_free_when_its_program_is_gone() {
        let starts = ProgramStarts::new(2);
        let (one, _other) = (starts.begin().unwrap(), starts.begin().unwrap());
        let full = starts.begin().unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::ResourceBusy);
        assert!(full.to_string().starts_with("2 programs are running"), "{full}");
        drop(one);
        let _third = starts.begin().unwrap();
        assert!(starts.clone().begin().is_err(), "clones share the limit");
    }

    #[tokio::test(start_paused = true)]
    async fn a_program_that_fails_at_once_is_started_less_and_less_often() {
        let (starts, failed) = (ProgramStarts::new(9), exit("exit 3"));
        for _ in 0..=FREE_FAILURES {
            starts.begin().unwrap().ended(&failed);
        }
        let mut delay = FIRST_DELAY;
        for _ in 0..8 {
            let refused = starts.begin().unwrap_err().to_string();
            assert!(
                refused.contains("exited with status 3") && refused.contains("is started again in"),
                "{refused}"
            );
            advance(delay - Duration::from_millis(1)).await;
            assert!(starts.begin().is_err(), "{delay:?}");
            advance(Duration::from_millis(1)).await;
            starts.begin().unwrap().ended(&failed);
            delay = MAX_DELAY.min(delay * 2);
        }
        assert_eq!(delay, MAX_DELAY);
        // One that stays ends the row.
        advance(MAX_DELAY).await;
        let stays = starts.begin().unwrap();
        advance(UNSTABLE).await;
        stays.ended(&failed);
        for _ in 0..FREE_FAILURES {
            starts.begin().unwrap().ended(&failed);
        }
        starts.begin().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_was_ended_from_outside_has_not_failed() {
        let (starts, killed) = (ProgramStarts::new(9), exit("kill -9 $$"));
        let mut closed = exit("exit 0");
        closed.stage = Stage::Closed;
        for _ in 0..20 {
            starts.begin().unwrap().ended(&killed);
            starts.begin().unwrap().ended(&closed);
        }
        advance(SECOND).await;
        starts.begin().unwrap();
    }
}
