//! A program between its host and its standard streams.

use std::{
    ffi::OsStr,
    io::{self, Read as _},
    process::{ExitStatus, Stdio},
    thread,
    time::Duration,
};

use bytes::Bytes;
use pintle::{
    message_log::{ConnectionLog, Direction, Side},
    transport::TransportKind,
};
use pintle_host::config::Platform;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
    sync::{mpsc, watch},
    task::JoinHandle,
    time::{Instant, sleep, sleep_until},
};

use super::lines::LoggedLines;
use crate::{
    args::quoted,
    failure::{Exit, Failure},
    output::Output,
    recording::Recorder,
    targets::{LaunchedProgram, launched},
};

/// How much is passed on at once.
const CHUNK: usize = 64 << 10;
/// The number of chunks that wait for a slow reader, in each direction.
const AHEAD: usize = 4;
/// How long a program may go on after a signal to end. Hosts kill after two seconds, and a killed tap could end nothing.
const GRACE: Duration = Duration::from_millis(1500);
/// How long output may arrive after the end of a program, from processes that it has started.
const LINGER: Duration = Duration::from_secs(1);

/// Runs a program, passes its streams, its exit code and signals on, and records the messages.
pub(super) async fn run(
    program: &LaunchedProgram,
    recorder: &Recorder,
    output: &Output,
) -> Result<(), Failure> {
    #[cfg(unix)]
    let mut signals =
        super::signals::ForwardedSignals::listen().map_err(|error| Failure::internal(&error))?;
    let log = ConnectionLog::new(&recorder.log(), Side::Client, TransportKind::Stdio, None);
    // In the group of this process, so that what ends the group ends the program too.
    let LaunchedProgram { program, args, env, cwd } = program;
    let (launched, args) = launched(Platform::current(), program.to_owned(), args.clone());
    let mut command = Command::new(launched);
    if let Some(directory) = cwd {
        command.current_dir(directory);
    }
    let mut child = command
        .args(args)
        .envs(env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // A terminal gets it with its control characters made visible.
        .stderr(if output.shares_errors() { Stdio::inherit() } else { Stdio::piped() })
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| not_started(program, &error))?;
    let lines = |direction| LoggedLines::new(log.clone(), direction);
    let input = child.stdin.take().map(|to| tokio::spawn(pass_input(to, lines(Direction::Out))));
    let (exited, exit) = watch::channel(false);
    let passing =
        child.stdout.take().map(|from| pass_output(from, lines(Direction::In), exit, output.clone()));

    if let Some(from) = child.stderr.take() {
        tokio::spawn(show_errors(from, output.clone()));
    }

    let mut kill_at: Option<Instant> = None;
    let status = loop {
        #[cfg(unix)]
        let signal = signals.next();
        #[cfg(not(unix))]
        let signal = std::future::pending();
        let killing = async {
            match kill_at {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            status = child.wait() => break status.map_err(|error| Failure::internal(&error))?,
            signal = signal => pass_signal(signal, &child, &mut kill_at),
            () = killing => {
                kill_at = None;
                // It may have ended meanwhile.
                let _ = child.start_kill();
            }
        }
    };
    exited.send_replace(true);
    if let Some(passing) = passing {
        // The host reads the last output as slowly as it likes.
        #[cfg(unix)]
        tokio::select! { _ = passing => {}, _ = signals.next() => {} }
        #[cfg(not(unix))]
        let _ = passing.await;
    }
    input.inspect(JoinHandle::abort);
    match code(status) {
        0 => Ok(()),
        code => Err(Failure::passed_on(code)),
    }
}

#[cfg(unix)]
fn pass_signal(signal: super::signals::ForwardedSignal, child: &Child, kill_at: &mut Option<Instant>) {
    if let Some(id) = child.id() {
        signal.send_to(id);
    }
    if signal.ends() && kill_at.is_none() {
        *kill_at = Some(Instant::now() + GRACE);
    }
}

#[cfg(not(unix))]
fn pass_signal(signal: std::convert::Infallible, _: &Child, _: &mut Option<Instant>) {
    match signal {}
}

/// Passes standard input on to the program, and its end.
async fn pass_input(mut to: ChildStdin, mut lines: LoggedLines) {
    let (sender, mut chunks) = mpsc::channel::<Bytes>(AHEAD);
    // Not a thread of the runtime, which would wait for it at the end.
    thread::spawn(move || {
        let mut buffer = vec![0; CHUNK];
        loop {
            match io::stdin().lock().read(&mut buffer) {
                Ok(0) => return,
                Ok(count) => match sender.blocking_send(Bytes::copy_from_slice(&buffer[..count])) {
                    Ok(()) => {}
                    Err(_) => return,
                },
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    });
    while let Some(chunk) = chunks.recv().await {
        lines.push(&chunk);
        // A program may close its input and go on.
        if to.write_all(&chunk).await.is_err() || to.flush().await.is_err() {
            break;
        }
    }
    lines.end();
}

/// Passes the output of the program on. Completes when all of it is written, or nobody reads it.
///
/// Processes that the program has started may hold its output open: after its exit, what they write is passed on until they
/// pause.
fn pass_output(
    mut from: ChildStdout,
    mut lines: LoggedLines,
    mut exit: watch::Receiver<bool>,
    output: Output,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        let (sender, mut chunks) = mpsc::channel::<Bytes>(AHEAD);
        let (done, written) = tokio::sync::oneshot::channel::<()>();
        // Not a thread of the runtime, which would wait for it at the end.
        thread::spawn(move || {
            let _done = done;
            while let Some(chunk) = chunks.blocking_recv() {
                if output.pass_on(&chunk).is_err() {
                    return;
                }
            }
            output.close();
        });
        let mut buffer = vec![0; CHUNK];
        loop {
            let paused = async {
                // It fails when the command ends.
                let _ = exit.wait_for(|exited| *exited).await;
                sleep(LINGER).await;
            };
            let count = tokio::select! {
                biased;
                read = from.read(&mut buffer) => match read {
                    Ok(count @ 1..) => count,
                    _ => break,
                },
                () = paused => break,
            };
            lines.push(&buffer[..count]);
            if sender.send(Bytes::copy_from_slice(&buffer[..count])).await.is_err() {
                break;
            }
        }
        lines.end();
        // The program is notified that nobody reads.
        drop((from, sender));
        // It fails when the thread has ended.
        let _ = written.await;
    })
}

/// Prints the standard error of the program to a terminal.
async fn show_errors(from: ChildStderr, output: Output) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    // A line without an end is printed in parts.
    while let Ok(1..) = (&mut from).take(CHUNK as u64).read_until(b'\n', &mut line).await {
        output.foreign_error(String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
}

/// Returns the exit code of a program; after a signal, the one that shells use.
fn code(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return u8::try_from(128 + signal).unwrap_or(u8::MAX);
    }
    status.code().map_or(1, |code| u8::try_from(code).unwrap_or(1))
}

fn not_started(program: &OsStr, error: &io::Error) -> Failure {
    let shown = program.to_string_lossy();
    let message = match error.kind() {
        io::ErrorKind::NotFound => format!("no such program: `{shown}`: install it or give its path"),
        _ => format!("the program `{shown}` cannot be started: {error}"),
    };
    Failure::new(Exit::Unreachable, message, format!("which {}", quoted(&shown)))
}
