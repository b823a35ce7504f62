//! Verbs line by line, on one connection.

mod candidates;
mod editor;
mod history;
mod line;
mod lists;
mod session;
mod words;

use clap::CommandFactory as _;
use tokio::{pin, sync::mpsc};

use crate::{
    args::QuestionArgs,
    failure::{Exit, Failure},
    output::{Console, LineRequest, Output, Text, Tone, TypedLine},
    signals,
    targets::Endpoint,
    verbs::ReplArgs,
};
use editor::CompletionRequest;
use history::{History, has_secret};
use line::{Line, OWN_WORDS, VERBS, VerbLine};
use session::Session;

/// The length of the name of the target in the prompt.
const MAX_PROMPT: usize = 24;

/// Runs the lines that are typed, or those of a script.
pub(crate) async fn run(args: ReplArgs, output: &Output) -> Result<(), Failure> {
    let ReplArgs { no_history, sample_with, roots, target } = args;
    let (endpoint, words) = Endpoint::take("repl", target.clone())?;
    endpoint.no_more(&words, "repl")?;
    let questions = QuestionArgs { sample_with, roots, ..QuestionArgs::default() };
    let interrupted = || Failure::silent(Exit::Interrupted);
    if !output.is_interactive() {
        let mut session = Session::new(endpoint, target, questions, output).await?;
        let done = tokio::select! {
            biased;
            () = signals::interrupted() => Err(interrupted()),
            done = run_script(&mut session, output) => done,
        };
        session.close().await;
        return done;
    }
    let history = History::of_user(!no_history);
    // The editor asks for one at a time.
    let (requests, completions) = mpsc::channel(1);
    let console = editor::start(&history.load(), requests)?;
    let output = output.with_console(console.clone());
    let mut session = Session::new(endpoint, target, questions, &output).await?;
    let opened = tokio::select! {
        biased;
        () = signals::interrupted() => Err(interrupted()),
        opened = session.open() => opened,
    };
    let mut terminal = ReplTerminal { session, history, console, completions, output };
    let done = match opened {
        Ok(()) => terminal.run().await,
        Err(failure) => Err(failure),
    };
    terminal.session.close().await;
    done
}

/// Runs the lines of standard input. The failure is that of the last line that failed.
async fn run_script(session: &mut Session, output: &Output) -> Result<(), Failure> {
    session.open().await?;
    let mut done = Ok(());
    for number in 1.. {
        let TypedLine::Line(line) = output.console().command(LineRequest::default()).await else { break };
        let ran = match Line::parse(&line, output.settings()) {
            Ok(Line::Exit) => break,
            Ok(line) => session.run(line).await,
            Err(failure) => Err((failure, output.clone())),
        };
        if let Err((failure, output)) = ran {
            let failure = as_in_line(failure);
            let exit = failure.exit;
            if !failure.is_silent() {
                output.failure(&failure.detail(format!("line {number}: {line}")));
            }
            if exit != Exit::Success {
                done = Err(Failure::silent(exit));
            }
        }
    }
    done
}

/// The prompt of a user.
struct ReplTerminal {
    session: Session,
    history: History,
    console: Console,
    completions: mpsc::Receiver<CompletionRequest>,
    output: Output,
}

impl ReplTerminal {
    async fn run(&mut self) -> Result<(), Failure> {
        self.output.note(self.session.greeting());
        let mut remember = None;
        loop {
            let line = match self.read(remember.take()).await {
                TypedLine::Line(line) => line,
                TypedLine::Interrupted => continue,
                TypedLine::End => break,
            };
            let tool = self.session.called_tool(&line).await;
            // A space before a line keeps it out of the history, as in shells.
            if !line.starts_with(' ') && !line.trim().is_empty() && !has_secret(&line, tool.as_ref()) {
                self.history.add(&line);
                remember = Some(line.clone());
            }
            let ran = match Line::parse(&line, self.output.settings()) {
                Ok(Line::Exit) => break,
                Ok(line) => self.run_until_interrupted(line).await,
                Err(failure) => Err((failure, self.output.clone())),
            };
            if let Err((failure, output)) = ran {
                output.failure(&as_in_line(failure));
            }
        }
        Ok(())
    }

    /// Reads a line, and completes words meanwhile.
    async fn read(&mut self, remember: Option<String>) -> TypedLine {
        let label: String = self.session.label().chars().take(MAX_PROMPT).collect();
        let mut prompt = Text::new();
        prompt.tone(Tone::Title, label).add("> ");
        let prompt = self.output.rendered(&prompt);
        let reading = self.console.command(LineRequest { prompt, is_command: true, remember });
        pin!(reading);
        loop {
            tokio::select! {
                line = &mut reading => return line,
                Some(request) = self.completions.recv() => {
                    let CompletionRequest { line, position, reply } = request;
                    // The editor may have stopped to wait.
                    let _ = reply.try_send(self.session.complete(&line, position).await);
                }
            }
        }
    }

    /// Runs a line until it is done or the user presses Ctrl-C, which cancels its call.
    async fn run_until_interrupted(&mut self, line: Line) -> Result<(), (Failure, Output)> {
        let interrupted = async {
            tokio::select! {
                () = signals::interrupted() => {}
                () = self.console.interrupted() => {}
            }
        };
        tokio::select! {
            biased;
            () = interrupted => {
                self.output.progress(&Text::new());
                self.output.note("interrupted");
                Ok(())
            }
            done = self.session.run(line) => done,
        }
    }
}

/// Returns a failure whose next line is one that can be typed here.
fn as_in_line(mut failure: Failure) -> Failure {
    if let Some(rest) = failure.next.strip_prefix("pintle ")
        && rest.split(' ').next().is_some_and(|verb| VERBS.contains(&verb))
    {
        failure.next = rest.to_owned();
    }
    failure
}

/// Formats the verbs and words of lines.
fn help(text: &mut Text) {
    let command = VerbLine::command();
    let verbs = VERBS.iter().filter_map(|verb| command.find_subcommand(verb));
    text.tone(Tone::Title, "Verbs").line(", as in a shell, without `pintle` and the target");
    for verb in verbs {
        let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
        text.add("  ").tone(Tone::Method, format_args!("{:<13}", verb.get_name())).line(about);
    }
    text.end().tone(Tone::Title, "Words of lines").end();
    for (word, does) in OWN_WORDS {
        text.add("  ").tone(Tone::Method, format_args!("{word:<13}")).line(does);
    }
    text.end().line("Tab completes verbs, names, arguments and values; Ctrl-C cancels a call; `help call` has its options.");
}
