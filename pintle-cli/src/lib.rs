//! The `pintle` command, as a library for its own tests.

mod args;
mod arguments;
mod auth;
mod cli;
mod completion;
mod connection;
mod content;
pub mod demo;
mod failure;
mod forms;
mod listen;
mod output;
mod recording;
mod repl;
mod signals;
mod storage;
mod supervisor;
mod suspended;
mod targets;
pub mod tour;
mod verbs;

use std::{
    ffi::OsString,
    future::pending,
    io,
    num::NonZeroUsize,
    process::ExitCode,
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use clap::{CommandFactory as _, Parser as _};
use tokio::runtime::{Builder, Runtime};

use cli::Cli;
use failure::{Exit, Failure};
use output::{Output, OutputSettings};
use signals::{SignalPolicy, interrupted};
use verbs::Verb;

/// The first word of a command line that a shell runs to complete another one.
const COMPLETE: &str = "__complete";

/// How long the threads of a verb that has ended are waited for.
const SHUTDOWN: Duration = Duration::from_secs(1);

/// Runs a command with the given arguments, without the name of the program.
pub fn run(arguments: impl IntoIterator<Item = impl Into<OsString>>) -> ExitCode {
    let typed: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
    if let Some((COMPLETE, words)) =
        typed.split_first().map(|(first, words)| (first.to_str().unwrap_or_default(), words))
    {
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let output = Output::new(OutputSettings::default());
        let found = completion::candidates(&Cli::command(), &words);
        let printed = output.text(|text| {
            for word in &found {
                text.line(word);
            }
        });
        return finish(&output, printed);
    }
    #[cfg(unix)]
    if typed.first().is_some_and(|word| word == supervisor::SUPERVISE) {
        return supervisor::run();
    }
    let name = OsString::from("pintle");
    let words = args::mark_flags(&Cli::command(), &typed);
    match Cli::try_parse_from(std::iter::once(&name).chain(&words)) {
        Ok(Cli { verb, global }) => {
            let output = Output::new(global.into_settings(&typed));
            let done = match verb {
                Some(verb) => execute(verb, &output).map_err(|failure| args::with_more_time(failure, &typed)),
                None if typed.is_empty() => execute(Verb::default(), &output),
                None => {
                    let option = typed.first().map(|word| word.to_string_lossy()).unwrap_or_default();
                    let message = format!("`{option}` is an option of a verb, and there is none");
                    Err(Failure::usage(message, format!("pintle ls demo {option}")))
                }
            };
            finish(&output, done)
        }
        Err(error) => {
            // Its own options could not be read: only this one matters here.
            let json = typed.iter().take_while(|word| *word != "--").any(|word| word == "--json");
            let output = Output::new(OutputSettings { json, ..OutputSettings::default() });
            let done = match error.use_stderr() {
                // Help, or the version.
                false => output.text(|text| {
                    text.block(&error);
                }),
                true => {
                    let verb = verb_of(&typed);
                    Err(args::usage_failure(&error, verb.as_deref(), &Cli::command(), &typed))
                }
            };
            finish(&output, done)
        }
    }
}

/// Runs a verb until it ends, or the user presses Ctrl-C, or the process is asked to end. That drops it: calls are cancelled, and
/// programs ended.
fn execute(verb: Verb, output: &Output) -> Result<(), Failure> {
    let runtime = runtime(verb.serves_many()).map_err(|error| Failure::internal(&error))?;
    let (is_handled, is_server) = (verb.handles_signals(), verb.is_server());
    if !verb.receives_signals() {
        let is_gateway = matches!(verb, Verb::Gateway(_));
        // A gateway opens its logs again on `SIGHUP`.
        signals::listen(SignalPolicy { is_handled, drains: is_gateway, ends_on_hangup: !is_gateway });
    }
    let done = runtime.block_on(async {
        let done = match is_handled {
            true => run_verb(verb, output).await,
            false => tokio::select! {
                // An interrupted verb has no result.
                biased;
                () = interrupted() => Err(Failure::silent(Exit::Interrupted)),
                done = run_verb(verb, output) => done,
            },
        };
        output.flush_recording().await;
        output.flush_log().await;
        done
    });
    // A thread that is busy is not waited for.
    runtime.shutdown_timeout(SHUTDOWN);
    match (done, signals::exit()) {
        // Servers run until they are stopped.
        (Err(failure), Some((_, true))) if failure.exit == Exit::Interrupted && is_server => Ok(()),
        (Err(failure), Some((exit, _))) if failure.exit == Exit::Interrupted => {
            if exit == Exit::Interrupted && !is_server {
                output.cancelled();
            }
            Err(Failure::silent(exit))
        }
        (done, _) => done,
    }
}

/// The interval in which a thread of a runtime is woken that may have to take the place of another.
const WAKE_INTERVAL: Duration = Duration::from_millis(250);

/// Returns the runtime of a verb. One that serves many clients has several threads, so that a busy call does not stop the others.
fn runtime(serves_many: bool) -> io::Result<Runtime> {
    let mut builder = match serves_many {
        true => Builder::new_multi_thread(),
        false => Builder::new_current_thread(),
    };
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let runtime = builder.worker_threads(cores.max(2)).enable_all().build()?;
    if serves_many {
        wake_regularly(&runtime)?;
    }
    Ok(runtime)
}

/// Wakes a thread of a runtime now and then, until that ends. In tokio the thread that waited for the network also runs what arrived,
/// and no other waits in its place until something is spawned: a call that keeps it busy would stop everything.
fn wake_regularly(runtime: &Runtime) -> io::Result<()> {
    let (running, has_ended) = mpsc::channel::<()>();
    runtime.spawn(async move {
        pending::<()>().await;
        drop(running);
    });
    let handle = runtime.handle().clone();
    let wake = move || {
        while has_ended.recv_timeout(WAKE_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            handle.spawn(async {});
        }
    };
    thread::Builder::new().name("waker".to_owned()).spawn(wake).map(drop)
}

async fn run_verb(verb: Verb, output: &Output) -> Result<(), Failure> {
    match verb {
        Verb::Man(args) => verbs::man::run(&args, Cli::command(), output),
        Verb::Repl(args) => repl::run(args, output).await,
        verb => verbs::run(verb, output).await,
    }
}

fn finish(output: &Output, done: Result<(), Failure>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output.failure(&failure);
            failure.exit_code()
        }
    }
}

/// Returns the verb of a command line that could not be read.
fn verb_of(typed: &[OsString]) -> Option<String> {
    let command = Cli::command();
    let words = typed.iter().take_while(|word| *word != "--").filter_map(|word| word.to_str());
    let mut known = words.filter(|word| command.find_subcommand(word).is_some());
    known.next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::TcpStream,
        sync::{
            Arc,
            atomic::{AtomicBool, Ordering},
        },
    };

    use pintle::{Server, server::tool};

    use super::*;
    use crate::listen::{Beside, ENDPOINT, ListenArgs, Page, PageAccess, PageReader};

    struct Health;

    impl Beside for Health {
        fn page_access(&self, path: &str) -> Option<PageAccess> {
            (path == "/health").then_some(PageAccess::Open)
        }

        fn page(&self, _: &str, _: &PageReader<'_>) -> Option<Page> {
            let (status, content_type) = (http::StatusCode::OK, "text/plain");
            Some(Page { status, content_type, text: "ok".into() })
        }

        fn refused(&self, _: &str, _: http::StatusCode, _: tokio::time::Instant) {}
    }

    const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"spin","_meta":{
        "io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},
        "io.modelcontextprotocol/clientInfo":{"name":"t","version":"0"}}}}"#;

    #[test]
    fn a_busy_call_does_not_stop_the_others() {
        let (started, has_started) = mpsc::channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let over = is_over.clone();
        let spin = move || {
            let (started, over) = (started.clone(), over.clone());
            async move {
                started.send(()).unwrap();
                while !over.load(Ordering::Acquire) {
                    std::hint::spin_loop();
                }
                "done"
            }
        };
        let server = Server::new("busy", "1").tool(tool("spin", spin));
        let runtime = runtime(true).unwrap();
        let (address, _serving) = runtime.block_on(async {
            let listening = ListenArgs::default().listen("127.0.0.1:0", "demo").await.unwrap();
            let address = listening.local_url().unwrap().replace("http://", "");
            let routes = Arc::new(listening.routes(None));
            routes.insert(ENDPOINT, &server, |http| http).unwrap();
            let output = Output::new(OutputSettings::default());
            (address, listening.serve_routes(routes, Arc::new(Health), &output).unwrap())
        });
        let send = |request: String| {
            let mut stream = TcpStream::connect(&address).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            stream
        };
        let head = format!(
            "Host: {address}\r\nConnection: close\r\nContent-Type: application/json\r\nAccept: application/json, \
             text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: spin\r\n"
        );
        let mut call =
            send(format!("POST /mcp HTTP/1.1\r\n{head}Content-Length: {}\r\n\r\n{CALL}", CALL.len()));
        has_started.recv().unwrap();
        let mut answer = String::new();
        send(format!("GET /health HTTP/1.1\r\n{head}\r\n")).read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        is_over.store(true, Ordering::Release);
        answer.clear();
        call.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("done"), "{answer}");
    }
}
