use std::{
    collections::HashMap,
    io,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use pintle::transport::{ChildCommand, Exit, Stage};
use tokio::{
    sync::Notify,
    task::JoinSet,
    time::{Instant, timeout, timeout_at},
};

use crate::supervisor::Supervisor;

/// The time after its start in which the exit of a program counts as a failure.
const UNSTABLE: Duration = Duration::from_secs(10);
/// Failures in a row after which there is no delay.
const FREE_FAILURES: u32 = 3;
/// The delay after the next one. It doubles with each.
const FIRST_DELAY: Duration = Duration::from_millis(500);
const MAX_DELAY: Duration = Duration::from_secs(30);

/// How long to wait for programs to end: each stage of a shutdown takes two seconds.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// The number of connections to a target with a URL at the same time: each of a thousand callers may have its own, and each session.
const MAX_CONNECTIONS: usize = 4_096;

/// The limit of callers whose failures are remembered.
const MAX_CALLERS: usize = 1_000;

/// The programs of a target and the connections to its URL: how many there are, and when the next program may be started. Clones share it.
///
/// An authenticated caller has at most three quarters of them, and waits only for what its own programs did.
#[derive(Clone, Debug)]
pub(crate) struct ProgramStarts {
    programs: Slots,
    /// Nobody waits for these at the end.
    connections: Slots,
    /// How long a caller waits for a slot.
    max_wait: Duration,
    supervisor: Supervisor,
}

/// A limited number of programs or connections. Clones share it.
#[derive(Clone, Debug)]
struct Slots {
    limit: usize,
    /// The users of the slots, for messages.
    kind: &'static str,
    /// The advice of a message when all are taken.
    advice: Arc<str>,
    state: Arc<Mutex<StartState>>,
    /// Notified when one is free again.
    gone: Arc<Notify>,
}

/// The name of an authenticated caller that a program is started for; `None` for all others.
type StartedFor = Option<Box<str>>;

#[derive(Debug, Default)]
struct StartState {
    running: HashMap<StartedFor, usize>,
    failures: HashMap<StartedFor, Failures>,
}

/// Programs of a caller that exited soon after their start.
#[derive(Clone, Copy, Debug)]
struct Failures {
    /// How many in a row.
    count: u32,
    /// When the next program may be started.
    until: Instant,
    /// How the last one exited.
    exit: Exit,
}

impl StartState {
    fn all_running(&self) -> usize {
        self.running.values().sum()
    }
}

impl ProgramStarts {
    /// Creates a limit, with the option that sets it, for messages.
    pub(crate) fn new(limit: usize, option: &'static str) -> Self {
        let advice = format!("end a session, or have {option} raised");
        let programs = Slots::new(limit, "programs of this target are running", &advice);
        let advice = "end a session, or call again later";
        let connections = Slots::new(MAX_CONNECTIONS, "connections to this target are open", advice);
        Self { programs, connections, max_wait: Duration::ZERO, supervisor: Supervisor::default() }
    }

    /// Has callers wait for a slot for this time.
    pub(super) fn max_wait(mut self, max_wait: Duration) -> Self {
        self.max_wait = max_wait;
        self
    }

    /// Has programs ended by a supervisor that has others to watch too.
    pub(crate) fn supervised_by(mut self, supervisor: &Supervisor) -> Self {
        self.supervisor = supervisor.clone();
        self
    }

    /// Returns whether a program runs, or another value may start one.
    pub(crate) fn is_used(&self) -> bool {
        Arc::strong_count(&self.programs.state) > 1
    }

    /// Returns the number of programs that run.
    pub(crate) fn running(&self) -> usize {
        lock(&self.programs.state).all_running()
    }

    /// Waits until no program runs, for a limited time.
    pub(crate) async fn all_gone(&self) {
        let gone = async {
            loop {
                let notified = self.programs.gone.notified();
                if lock(&self.programs.state).all_running() == 0 {
                    return;
                }
                notified.await;
            }
        };
        // Those that are left are killed when the process ends.
        let _ = timeout(MAX_WAIT, gone).await;
    }

    /// Waits until no program of any of these runs, for a limited time in all: hosts do not wait for long.
    pub(crate) async fn none_left(programs: Vec<Self>) {
        let gone: JoinSet<()> =
            programs.into_iter().map(|starts| async move { starts.all_gone().await }).collect();
        gone.join_all().await;
    }

    /// Returns the command of a program that takes this slot, until it is gone with all that it has started.
    pub(super) fn command_in(&self, slot: ProgramSlot, command: &ChildCommand) -> ChildCommand {
        command.clone().on_start(self.supervisor.watcher()).on_exit(move |exit| slot.ended(exit))
    }

    /// Takes the slot of a program that is about to be started for an authenticated caller, or for others, as soon as there is one.
    ///
    /// # Errors
    ///
    /// No slot has become free in time: [`io::ErrorKind::ResourceBusy`], which a relay reports as overload. Or programs of the caller have
    /// exited soon after their start, and the next one has to wait.
    pub(super) async fn begin(&self, caller: Option<&str>) -> io::Result<ProgramSlot> {
        self.programs.wait(caller, self.max_wait).await
    }

    /// Takes the slot of a connection to a URL that is about to be opened for an authenticated caller, or for others, as soon as there is
    /// one.
    ///
    /// # Errors
    ///
    /// No slot has become free in time, as with programs.
    pub(super) async fn begin_connection(&self, caller: Option<&str>) -> io::Result<ProgramSlot> {
        self.connections.wait(caller, self.max_wait).await
    }
}

impl Slots {
    fn new(limit: usize, kind: &'static str, advice: &str) -> Self {
        Self { limit, kind, advice: advice.into(), state: Arc::default(), gone: Arc::default() }
    }

    /// Takes a slot as soon as there is one.
    async fn wait(&self, caller: Option<&str>, max_wait: Duration) -> io::Result<ProgramSlot> {
        let deadline = Instant::now() + max_wait;
        loop {
            let mut gone = pin!(self.gone.notified());
            gone.as_mut().enable();
            match self.take(caller) {
                Err(full) if full.kind() == io::ErrorKind::ResourceBusy => {
                    timeout_at(deadline, gone).await.map_err(|_| full)?;
                }
                taken => return taken,
            }
        }
    }

    fn take(&self, caller: Option<&str>) -> io::Result<ProgramSlot> {
        let Self { limit, kind, advice, .. } = self;
        let caller: StartedFor = caller.map(Into::into);
        let mut state = lock(&self.state);
        let of_caller = state.running.get(&caller).copied().unwrap_or_default();
        let share = (limit / 4 * 3 + limit % 4 * 3 / 4).max(1);
        let full = match state.all_running() {
            all if all >= *limit => Some(format!("{all} {kind}")),
            _ if caller.is_some() && of_caller >= share => {
                Some(format!("{of_caller} {kind} for this caller"))
            }
            _ => None,
        };
        if let Some(full) = full {
            let message = format!("{full}, which is the limit: {advice}");
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, message));
        }
        let now = Instant::now();
        if let Some(Failures { count, until, exit }) = state.failures.get(&caller).filter(|it| it.until > now)
        {
            let wait = *until - now;
            return Err(io::Error::other(format!(
                "the program was started {count} times and {exit} each time within {UNSTABLE:?}; it is started again in {wait:.1?}"
            )));
        }
        *state.running.entry(caller.clone()).or_default() += 1;
        Ok(ProgramSlot { caller, slots: self.clone(), started: now })
    }
}

/// The slot of a program or of a connection. It is free again when this is dropped.
#[derive(Debug)]
pub(super) struct ProgramSlot {
    caller: StartedFor,
    slots: Slots,
    started: Instant,
}

impl ProgramSlot {
    /// Notes how the program ended. One that exits by itself soon after its start delays the next one of its caller.
    pub(super) fn ended(&self, exit: &Exit) {
        let (mut state, now) = (lock(&self.slots.state), Instant::now());
        let failures = &mut state.failures;
        if exit.stage == Stage::Exited && !is_killed(exit) && self.started.elapsed() < UNSTABLE {
            let count = failures.get(&self.caller).map_or(0, |known| known.count).saturating_add(1);
            if failures.len() >= MAX_CALLERS {
                failures.retain(|_, known| known.until > now);
            }
            if failures.len() < MAX_CALLERS || failures.contains_key(&self.caller) {
                let until = now + delay_after(count).unwrap_or_default();
                failures.insert(self.caller.clone(), Failures { count, until, exit: *exit });
            }
        } else if self.started.elapsed() >= UNSTABLE {
            failures.remove(&self.caller);
        }
    }
}

impl Drop for ProgramSlot {
    fn drop(&mut self) {
        let mut state = lock(&self.slots.state);
        if let Some(running) = state.running.get_mut(&self.caller) {
            *running -= 1;
            if *running == 0 {
                state.running.remove(&self.caller);
            }
        }
        drop(state);
        self.slots.gone.notify_waiters();
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
        let starts = ProgramStarts::new(2, "`--max-programs`");
        let (one, _other) = (starts.programs.take(None).unwrap(), starts.programs.take(None).unwrap());
        let full = starts.programs.take(None).unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::ResourceBusy);
        assert!(full.to_string().starts_with("2 programs of this target are running"), "{full}");
        drop(one);
        let _third = starts.programs.take(None).unwrap();
        assert!(starts.clone().programs.take(None).is_err(), "clones share the limit");
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_has_three_quarters_and_waits_only_for_its_own_failures() {
        let starts = ProgramStarts::new(4, "`max_programs`");
        let of_ann: Vec<_> = (0..3).map(|_| starts.programs.take(Some("ann")).unwrap()).collect();
        let full = starts.programs.take(Some("ann")).unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::ResourceBusy);
        assert!(
            full.to_string().contains("for this caller") && full.to_string().contains("`max_programs`"),
            "{full}"
        );
        let of_bob = starts.programs.take(Some("bob")).unwrap();
        assert!(starts.programs.take(Some("bob")).unwrap_err().to_string().starts_with("4 programs"));
        drop((of_ann, of_bob));
        let failed = exit("exit 3");
        for _ in 0..=FREE_FAILURES {
            starts.programs.take(Some("ann")).unwrap().ended(&failed);
        }
        assert!(starts.programs.take(Some("ann")).unwrap_err().to_string().contains("is started again in"));
        starts.programs.take(Some("bob")).unwrap();
        starts.programs.take(None).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_waits_for_a_slot_for_a_limited_time() {
        let starts = ProgramStarts::new(1, "`max_programs`").max_wait(2 * SECOND);
        let begun = Instant::now();
        let first = starts.begin(Some("ann")).await.unwrap();
        let full = starts.begin(Some("bob")).await.unwrap_err();
        assert_eq!((full.kind(), begun.elapsed()), (io::ErrorKind::ResourceBusy, 2 * SECOND));
        let freed = async {
            advance(SECOND).await;
            drop(first);
        };
        let (waited, ()) = tokio::join!(starts.begin(Some("bob")), freed);
        assert_eq!(begun.elapsed(), 3 * SECOND);
        // Who does not wait any longer takes none.
        timeout(SECOND, starts.begin(None)).await.unwrap_err();
        drop(waited.unwrap());
        starts.begin(None).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn connections_to_a_url_are_limited_as_programs_are_and_not_waited_for() {
        let starts = ProgramStarts::new(1, "`max_programs`");
        let share = MAX_CONNECTIONS / 4 * 3;
        let of_ann: Vec<_> = (0..share).map(|_| starts.connections.take(Some("ann")).unwrap()).collect();
        let full = starts.connections.take(Some("ann")).unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::ResourceBusy);
        assert!(full.to_string().contains("open for this caller, which is the limit"), "{full}");
        let of_others: Vec<_> =
            (share..MAX_CONNECTIONS).map(|_| starts.connections.take(None).unwrap()).collect();
        let full = starts.clone().connections.take(Some("bob")).unwrap_err().to_string();
        assert!(full.starts_with("4096 connections to this target are open"), "{full}");
        let begun = Instant::now();
        starts.all_gone().await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
        drop(of_others);
        starts.connections.take(Some("bob")).unwrap();
        drop(of_ann);
    }

    #[tokio::test(start_paused = true)]
    async fn programs_that_do_not_end_are_waited_for_at_the_same_time() {
        let programs = [(); 7].map(|()| ProgramStarts::new(1, "`max_programs`"));
        let _slots = programs.each_ref().map(|starts| starts.programs.take(None).unwrap());
        let begun = Instant::now();
        ProgramStarts::none_left(programs.to_vec()).await;
        assert_eq!(begun.elapsed(), MAX_WAIT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_program_that_fails_at_once_is_started_less_and_less_often() {
        let (starts, failed) = (ProgramStarts::new(9, "`--max-programs`"), exit("exit 3"));
        for _ in 0..=FREE_FAILURES {
            starts.programs.take(None).unwrap().ended(&failed);
        }
        let mut delay = FIRST_DELAY;
        for _ in 0..8 {
            let refused = starts.programs.take(None).unwrap_err().to_string();
            assert!(
                refused.contains("exited with status 3") && refused.contains("is started again in"),
                "{refused}"
            );
            advance(delay - Duration::from_millis(1)).await;
            assert!(starts.programs.take(None).is_err(), "{delay:?}");
            advance(Duration::from_millis(1)).await;
            starts.programs.take(None).unwrap().ended(&failed);
            delay = MAX_DELAY.min(delay * 2);
        }
        assert_eq!(delay, MAX_DELAY);
        // One that stays ends the row.
        advance(MAX_DELAY).await;
        let stays = starts.programs.take(None).unwrap();
        advance(UNSTABLE).await;
        stays.ended(&failed);
        for _ in 0..FREE_FAILURES {
            starts.programs.take(None).unwrap().ended(&failed);
        }
        starts.programs.take(None).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_was_ended_from_outside_has_not_failed() {
        let (starts, killed) = (ProgramStarts::new(9, "`--max-programs`"), exit("kill -9 $$"));
        let mut closed = exit("exit 0");
        closed.stage = Stage::Closed;
        for _ in 0..20 {
            starts.programs.take(None).unwrap().ended(&killed);
            starts.programs.take(None).unwrap().ended(&closed);
        }
        advance(SECOND).await;
        starts.programs.take(None).unwrap();
    }
}
