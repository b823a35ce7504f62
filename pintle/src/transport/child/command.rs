use std::{
    any::Any,
    env,
    ffi::{OsStr, OsString},
    fmt, io,
    path::{Path, PathBuf},
    process,
    sync::Arc,
    time::Duration,
};

use super::{Child, Exit, Stderr, counted::ReadCallback};
use crate::transport::open_files;

/// A program to start as a [`Child`].
///
/// ```no_run
/// use std::time::Duration;
///
/// use pintle::transport::{Child, Stderr};
///
/// # async fn start() -> std::io::Result<()> {
/// let child = Child::command("uvx")
///     .args(["mcp-server-git", "--verbose"])
///     .env("GIT_PAGER", "cat")
///     .inherit_env(["SSH_AUTH_SOCK", "GIT_*"])
///     .current_dir("/srv/repository")
///     .stderr(Stderr::lines(|line| tracing::debug!("git server: {line}")))
///     .grace(Duration::from_secs(5))
///     .spawn()?;
/// # drop(child);
/// # Ok(()) }
/// ```
///
/// `Debug` prints neither arguments nor the values of variables: they may be secrets.
#[derive(Clone)]
#[must_use = "it is started by `spawn`"]
pub struct ChildCommand {
    program: OsString,
    args: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    inherited: Inherited,
    directory: Option<PathBuf>,
    pub(super) stderr: Stderr,
    pub(super) grace: Duration,
    pub(super) limit: Option<usize>,
    pub(super) on_start: Option<StartCallback>,
    pub(super) on_output: Option<ReadCallback>,
    pub(super) on_exit: Option<ExitCallback>,
}

/// A function that is called with the id of a process group, and returns what is dropped when that is gone.
pub(super) type StartCallback = Arc<dyn Fn(u32) -> Box<dyn Any + Send + Sync> + Send + Sync>;

/// A function that is called when a process and its group are gone.
pub(super) type ExitCallback = Arc<dyn Fn(&Exit) + Send + Sync>;

#[derive(Clone, Debug)]
enum Inherited {
    All,
    /// The default ones, and these.
    Named(Vec<OsString>),
}

/// The environment variables that are inherited by default: paths and locale, nothing that may hold a secret.
const USUAL: &[&str] = if cfg!(windows) {
    &[
        "APPDATA",
        "COMSPEC",
        "HOMEDRIVE",
        "HOMEPATH",
        "LOCALAPPDATA",
        "PATH",
        "PATHEXT",
        "PROCESSOR_ARCHITECTURE",
        "PROGRAMDATA",
        "PROGRAMFILES",
        "SYSTEMDRIVE",
        "SYSTEMROOT",
        "TEMP",
        "TMP",
        "USERNAME",
        "USERPROFILE",
        "WINDIR",
    ]
} else {
    &["HOME", "LANG", "LC_*", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER"]
};

/// Default duration of each stage of a shutdown.
const GRACE: Duration = Duration::from_secs(2);

impl ChildCommand {
    pub(super) fn new(program: &OsStr) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            environment: Vec::new(),
            inherited: Inherited::Named(Vec::new()),
            directory: None,
            stderr: Stderr::Inherit,
            grace: GRACE,
            limit: None,
            on_start: None,
            on_output: None,
            on_exit: None,
        }
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().into());
        self
    }

    /// Adds arguments.
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().into()));
        self
    }

    /// Sets a variable in the child's environment.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.as_ref().into(), value.as_ref().into()));
        self
    }

    /// Passes on these variables too; a name that ends in `*` stands for all that begin like it.
    ///
    /// Passed on in any case are, on Unix, `HOME`, `LANG`, `LC_*`, `LOGNAME`, `PATH`, `SHELL`, `TERM`, `TMPDIR` and
    /// `USER`, and their likes on Windows. All others stay here: tokens and passwords often live in the environment.
    pub fn inherit_env(mut self, names: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        if let Inherited::Named(named) = &mut self.inherited {
            named.extend(names.into_iter().map(|name| name.as_ref().into()));
        }
        self
    }

    /// Inherits the whole environment. For servers that are trusted with every secret in it.
    pub fn full_env(mut self) -> Self {
        self.inherited = Inherited::All;
        self
    }

    /// Sets the working directory.
    pub fn current_dir(mut self, directory: impl AsRef<Path>) -> Self {
        self.directory = Some(directory.as_ref().into());
        self
    }

    /// Sets the destination of its standard error. Default: that of this process.
    pub fn stderr(mut self, stderr: Stderr) -> Self {
        self.stderr = stderr;
        self
    }

    /// Sets how long each stage of a shutdown lasts: after its input was closed, and after `SIGTERM`. Default: 2 seconds.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets the maximum size of a received message, instead of `Limits::message_bytes`.
    pub fn limit(mut self, bytes: usize) -> Self {
        self.limit = Some(bytes);
        self
    }

    /// Sets a function that is called with the id of the process, which is also that of its process group, when it has started: once for
    /// each process, if the child is started again. What it returns is dropped when the process and all of its group are gone.
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    ///
    /// use pintle::transport::Child;
    ///
    /// # #[cfg(unix)]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
    /// let running = Arc::new(Mutex::new(Vec::new()));
    /// let started = running.clone();
    /// let child = Child::command("cat").on_start(move |id| started.lock().unwrap().push(id)).spawn()?;
    /// assert_eq!(*running.lock().unwrap(), [child.id()]);
    /// # child.shutdown().await;
    /// # Ok(()) }
    /// # #[cfg(not(unix))] fn main() {}
    /// ```
    pub fn on_start<G: Send + Sync + 'static>(
        mut self,
        callback: impl Fn(u32) -> G + Send + Sync + 'static,
    ) -> Self {
        self.on_start = Some(Arc::new(move |id| Box::new(callback(id))));
        self
    }

    /// Sets a function that is called with the number of bytes of each read of its standard output, and of its standard error if that is
    /// captured ([`Stderr::Lines`]): also of lines without an end. It must not block.
    pub fn on_output(mut self, callback: impl Fn(usize) + Send + Sync + 'static) -> Self {
        self.on_output = Some(Arc::new(callback));
        self
    }

    /// Sets a function that is called when the process and all of its process group are gone: once for each process, if the child is
    /// started again. What it captures is dropped when the child and the last of its processes are gone.
    ///
    /// ```no_run
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    ///
    /// use pintle::transport::Child;
    ///
    /// static EXITED: AtomicUsize = AtomicUsize::new(0);
    ///
    /// # async fn start() -> std::io::Result<()> {
    /// let child = Child::command("uvx").arg("mcp-server-git").on_exit(|exit| {
    ///     println!("it {exit}, as {} before", EXITED.fetch_add(1, Ordering::Relaxed));
    /// });
    /// # drop(child.spawn()?);
    /// # Ok(()) }
    /// ```
    pub fn on_exit(mut self, callback: impl Fn(&Exit) + Send + Sync + 'static) -> Self {
        self.on_exit = Some(Arc::new(callback));
        self
    }

    /// Starts it, inside a tokio runtime with I/O and time enabled.
    pub fn spawn(self) -> io::Result<Child> {
        Child::start(self)
    }

    /// The program as it is shown in errors.
    pub(super) fn shown(&self) -> impl std::fmt::Display {
        self.program.display()
    }

    pub(super) fn prepare(&self) -> tokio::process::Command {
        let mut command = process::Command::new(&self.program);
        command.args(&self.args).stdin(process::Stdio::piped()).stdout(process::Stdio::piped());
        command.stderr(match self.stderr {
            Stderr::Inherit => process::Stdio::inherit(),
            Stderr::Null => process::Stdio::null(),
            Stderr::Lines(_) => process::Stdio::piped(),
        });
        if let Inherited::Named(named) = &self.inherited {
            command.env_clear();
            command.envs(env::vars_os().filter(|(name, value)| {
                let usual = USUAL.iter().map(OsStr::new);
                let wanted =
                    usual.chain(named.iter().map(AsRef::as_ref)).any(|pattern| covers(pattern, name));
                // A function exported by a shell: code, not a value.
                wanted && !value.as_encoded_bytes().starts_with(b"()")
            }));
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut command = tokio::process::Command::from(command);
        command.kill_on_drop(true);
        command
    }

    /// Says what to do about a program that did not start.
    pub(super) fn explain(&self, error: &io::Error) -> io::Error {
        let program = self.shown();
        let path = Path::new(&self.program);
        let why = match (error.kind(), &self.directory) {
            (io::ErrorKind::NotFound, Some(directory)) if !directory.is_dir() => {
                format!("no such directory: `{}`: create it or give another to start in", directory.display())
            }
            (io::ErrorKind::NotFound, _) if path.components().count() > 1 && path.exists() => {
                format!("`{program}` names in its first line a program that is not there: install that")
            }
            (io::ErrorKind::NotFound, _) => {
                format!("no such program: `{program}`: install it or give its path")
            }
            (io::ErrorKind::PermissionDenied, _) => {
                format!("may not run `{program}`: make it executable, or give the program that runs it")
            }
            _ if open_files::are_exhausted(error) => {
                let why = format!("could not start `{program}`: {}", open_files::explanation(error));
                return io::Error::new(io::ErrorKind::ResourceBusy, why);
            }
            _ => format!("could not start `{program}`: {error}"),
        };
        io::Error::new(error.kind(), why)
    }
}

impl fmt::Debug for ChildCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildCommand")
            .field("program", &self.program)
            .field("args", &self.args.len())
            .field("environment", &self.environment.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("inherited", &self.inherited)
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

fn covers(pattern: &OsStr, name: &OsStr) -> bool {
    let (pattern, name) = (pattern.as_encoded_bytes(), name.as_encoded_bytes());
    let (wanted, given) = match pattern.strip_suffix(b"*") {
        Some(prefix) => (prefix, name.get(..prefix.len()).unwrap_or(name)),
        None => (pattern, name),
    };
    if cfg!(windows) { wanted.eq_ignore_ascii_case(given) } else { wanted == given }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_printed() {
        let command = ChildCommand::new("server".as_ref()).args(["--key", "s3cret"]).env("TOKEN", "s3cret");
        let printed = format!("{command:?}");
        assert!(
            printed.contains("server") && printed.contains("TOKEN") && !printed.contains("s3cret"),
            "{printed}"
        );
    }

    #[test]
    fn a_star_stands_for_any_end_and_nothing_else_does() {
        let covers = |pattern: &str, name: &str| covers(pattern.as_ref(), name.as_ref());
        assert!(covers("PATH", "PATH") && covers("LC_*", "LC_ALL") && covers("LC_*", "LC_"));
        assert!(!covers("PATH", "PATHS") && !covers("LC_*", "LC") && !covers("PATH", "MANPATH"));
    }
}
