//! The supervisor: a process that ends the programs of this one if it is killed.

use std::{
    collections::BTreeSet,
    io::{self, Write as _},
    process::{Child, ChildStdin},
    sync::{Arc, Mutex, PoisonError},
};

#[cfg(unix)]
pub(crate) use process::{SUPERVISE, run};

/// A process that ends the programs of this one if it is killed: the command started again, which reads the ids of their process groups from
/// a pipe. It is started with the first program. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Supervisor(Arc<Mutex<Supervised>>);

#[derive(Debug, Default)]
struct Supervised {
    groups: BTreeSet<u32>,
    process: Option<(Child, ChildStdin)>,
}

impl Supervisor {
    /// Has the processes of a group ended if this process is killed. The value is dropped when they have ended.
    fn watch(&self, group: u32) -> WatchedGroup {
        self.change(|supervised| supervised.add(group));
        WatchedGroup { group, supervisor: self.clone() }
    }

    /// Returns a function that watches groups.
    pub(crate) fn watcher(&self) -> impl Fn(u32) -> WatchedGroup + Send + Sync + 'static {
        let supervisor = self.clone();
        move |group| supervisor.watch(group)
    }

    fn change(&self, change: impl FnOnce(&mut Supervised)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// A process group that is ended if this process is killed.
#[derive(Debug)]
pub(crate) struct WatchedGroup {
    group: u32,
    supervisor: Supervisor,
}

impl Drop for WatchedGroup {
    fn drop(&mut self) {
        self.supervisor.change(|supervised| supervised.remove(self.group));
    }
}

impl Supervised {
    fn add(&mut self, group: u32) {
        self.groups.insert(group);
        if !self.write(&format!("+{group}\n")) {
            // The first group, or the supervisor was killed.
            self.start();
        }
    }

    fn remove(&mut self, group: u32) {
        self.groups.remove(&group);
        self.write(&format!("-{group}\n"));
    }

    /// Returns whether a line was written. A supervisor that is stopped reads none, and is not waited for.
    fn write(&mut self, line: &str) -> bool {
        let Some((_, input)) = &mut self.process else { return false };
        match input.write_all(line.as_bytes()) {
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
            Ok(()) => true,
        }
    }

    /// Starts a supervisor for all groups. Without one, programs end when they read the end of their input.
    fn start(&mut self) {
        if let Some((mut ended, _)) = self.process.take() {
            let _ = ended.wait();
        }
        self.process = process::spawn().ok();
        let groups: String = self.groups.iter().map(|group| format!("+{group}\n")).collect();
        self.write(&groups);
    }
}

#[cfg(unix)]
mod process {
    use std::{
        collections::HashSet,
        env,
        io::{self, BufRead as _},
        os::unix::process::CommandExt as _,
        process::{Child, ChildStdin, Command, ExitCode, Stdio},
        thread,
        time::{Duration, Instant},
    };

    use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

    /// The first word of the command line of a supervisor.
    pub(crate) const SUPERVISE: &str = "__supervise";

    /// The time that programs have to end after their input has ended, and after `SIGTERM`.
    const GRACE: Duration = Duration::from_secs(1);
    /// The time between two looks at what is left.
    const LOOK: Duration = Duration::from_millis(20);

    /// Starts a supervisor, in a process group of its own, where no Ctrl-C reaches it. It has no variable: they may be secrets.
    pub(super) fn spawn() -> io::Result<(Child, ChildStdin)> {
        // The file may have been replaced by another version since this process was started.
        let own = if cfg!(target_os = "linux") { "/proc/self/exe".into() } else { env::current_exe()? };
        let mut command = Command::new(own);
        command.arg0("pintle").arg(SUPERVISE).env_clear().current_dir("/").process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut process = command.spawn()?;
        let input = process.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        rustix::io::ioctl_fionbio(&input, true)?;
        Ok((process, input))
    }

    /// Supervises the process at the other end of standard input: ends its programs when it has ended without them.
    pub(crate) fn run() -> ExitCode {
        let mut groups = HashSet::new();
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            let Some((sign, id)) = line.split_at_checked(1) else { continue };
            let Some(group) = id.parse().ok().and_then(Pid::from_raw) else { continue };
            match sign {
                "+" => groups.insert(group),
                _ => groups.remove(&group),
            };
        }
        for signal in [Signal::TERM, Signal::KILL] {
            let end = Instant::now() + GRACE;
            loop {
                // The system may use the id of an empty group again.
                groups.retain(|group| test_kill_process_group(*group).is_ok());
                if groups.is_empty() || Instant::now() >= end {
                    break;
                }
                thread::sleep(LOOK);
            }
            for group in &groups {
                let _ = kill_process_group(*group, signal);
            }
        }
        ExitCode::SUCCESS
    }
}

#[cfg(not(unix))]
mod process {
    use std::{
        io,
        process::{Child, ChildStdin},
    };

    /// There are no process groups.
    pub(super) fn spawn() -> io::Result<(Child, ChildStdin)> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
