//! The command as a process, and what it printed.

pub(crate) mod free_address;
#[cfg(target_os = "linux")]
pub(crate) mod hostile_login;
#[cfg(target_os = "linux")]
pub(crate) mod hostile_server;
pub(crate) mod http_request;
pub(crate) mod machine;
pub(crate) mod protected;
#[cfg(target_os = "linux")]
pub(crate) mod pty;
pub(crate) mod scripted_http;
pub(crate) mod snapshot;

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
    time::Duration,
};

use tokio::sync::watch;

/// The time after which what a test waits for will not happen any more.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The command, without what the environment of the tests may set.
pub(crate) fn pintle() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pintle"));
    for name in [
        "NO_COLOR",
        "CLICOLOR_FORCE",
        "COLUMNS",
        "http_proxy",
        "https_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "all_proxy",
    ] {
        command.env_remove(name);
    }
    // What it keeps is below the directory of the build.
    command.env("PINTLE_STATE_DIR", state_directory()).env_remove("BROWSER").env_remove("DISPLAY");
    command.env("PINTLE_CACHE_DIR", state_directory().join("cache"));
    command.env_remove("WAYLAND_DISPLAY");
    // Nor the servers that the user has configured.
    command.env("HOME", "/no/such/home").env("USERPROFILE", "/no/such/home").env_remove("XDG_CONFIG_HOME");
    command.env_remove("XDG_STATE_HOME");
    // No pager waits for a key, and the terminal is one that lines can be edited at.
    command.env("PAGER", "cat").env("TERM", "xterm").env_remove("TERM_PROGRAM").env_remove("TMUX");
    command
}

/// What the commands of this run keep.
pub(crate) fn state_directory() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("state-{}", std::process::id()))
}

/// What a command printed, and its exit code.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Printed {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs the command with nothing to read.
pub(crate) fn typed(words: &[impl AsRef<str>]) -> Printed {
    run(pintle().args(words.iter().map(AsRef::as_ref)))
}

pub(crate) fn run(command: &mut Command) -> Printed {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Printed { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Splits a line into words as a shell does, as far as tests need it.
pub(crate) fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut is_quoted = false;
    for letter in line.chars() {
        match letter {
            '\'' => {
                is_quoted = !is_quoted;
                word.get_or_insert_default();
            }
            ' ' if !is_quoted => words.extend(word.take()),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

/// A verb that serves HTTP, in a process that ends with this value.
pub(crate) struct HttpServing {
    process: Child,
    pub(crate) url: String,
    /// The lines of its standard error.
    lines: watch::Receiver<Vec<String>>,
}

impl HttpServing {
    pub(crate) fn demo() -> Self {
        Self::start(&["demo", "--http", "127.0.0.1:0"])
    }

    /// Starts a verb that prints its URL.
    pub(crate) fn start(words: &[&str]) -> Self {
        let mut command = pintle();
        command.args(words);
        Self::of(command)
    }

    /// Starts a command that prints its URL.
    pub(crate) fn of(mut command: Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = watch::channel(Vec::new());
        let stderr = BufReader::new(process.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                sender.send_modify(|lines| lines.push(line));
            }
        });
        let mut url = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Self { process, url: url.trim().to_owned(), lines }
    }
}

impl HttpServing {
    /// Returns the id of the process.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Waits for a line on standard error with a text, from the beginning on.
    pub(crate) async fn printed(&self, text: &str) -> String {
        let find = |lines: &Vec<String>| lines.iter().find(|line| line.contains(text)).cloned();
        let mut lines = self.lines.clone();
        let waited = tokio::time::timeout(PATIENCE, lines.wait_for(|lines| find(lines).is_some())).await;
        let found = waited.ok().and_then(|printed| find(&*printed.ok()?));
        found.unwrap_or_else(|| panic!("`{text}` is not printed: {:#?}", *self.lines.borrow()))
    }

    /// Waits until so many lines on standard error have a text, from the beginning on.
    #[cfg(target_os = "linux")]
    pub(crate) async fn printed_times(&self, text: &str, count: usize) {
        let is_printed =
            |lines: &Vec<String>| lines.iter().filter(|line| line.contains(text)).count() >= count;
        let mut lines = self.lines.clone();
        let waited = tokio::time::timeout(PATIENCE, lines.wait_for(is_printed)).await;
        if !waited.is_ok_and(|printed| printed.is_ok()) {
            panic!("`{text}` is not printed {count} times: {:#?}", *self.lines.borrow());
        }
    }

    /// Returns all lines of standard error, once the process has ended.
    #[cfg(unix)]
    pub(crate) async fn all_printed(&self) -> Vec<String> {
        let mut lines = self.lines.clone();
        while lines.changed().await.is_ok() {}
        lines.borrow().clone()
    }

    /// Waits until the process has ended by itself.
    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        self.process.wait().unwrap().code()
    }
}

impl Drop for HttpServing {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        self.process.wait().unwrap();
    }
}
