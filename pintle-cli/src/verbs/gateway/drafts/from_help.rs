use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use pintle::transport::{Child, Stderr};
use pintle_serve::{CommandEntry, HelpDraft, parse_one_line};
use serde_json::json;
use tokio::time::timeout;

use super::write_new;
use crate::{failure::Failure, output::Output};

const NEXT: &str = "pintle serve --from-help 'git log'";
/// The time that a program has to print its help.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The most bytes of a help text, and the most lines of it on standard error.
const MAX_BYTES: usize = 1 << 20;
const MAX_LINES: usize = 10_000;

/// Writes a file with a tool that is drafted from the help of a program, or prints it.
pub(in crate::verbs::gateway) async fn write(
    command: &str,
    path: Option<&Path>,
    output: &Output,
) -> Result<(), Failure> {
    let wrong = |message: String| Failure::usage(message, NEXT);
    let read = parse_one_line(&format!("tool = {command}"))
        .map_err(|_| wrong(format!("`{command}` is no command")))?;
    let CommandEntry::Words(words) = read.1.command else {
        return Err(wrong(format!("`{command}` is no command")));
    };
    let help = help(&words).await.map_err(|reason| wrong(format!("`{command} --help` {reason}")))?;
    let draft = HelpDraft::read(&words, &help);
    let program =
        words.iter().map(|word| word.rsplit('/').next().unwrap_or_default()).collect::<Vec<_>>().join("_");
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = program.chars().map(plain).take(48).collect();
    let text = format!(
        "# Drafted by `pintle serve --from-help`: remove what models do not need, and say what the tool is for.\n{}",
        draft.to_toml(&name)
    );
    write_new(path, &text, NEXT)?;
    if !draft.commands.is_empty() {
        let first = &draft.commands[0];
        output.note(format!(
            "`{command}` has commands, each of which can be a tool: {}; draft one with `--from-help '{command} {first}'`",
            draft.commands.join(", ")
        ));
    }
    match path {
        None => output.result(&json!({ "file": text }), |shown| {
            shown.block(text.trim_end());
        }),
        Some(path) => output.result(&json!({ "path": path, "tools": 1 }), |shown| {
            let path = path.display();
            shown.line(format!("{path}: 1 tool; check it with `pintle serve {path} --check`"));
        }),
    }
}

/// Returns what a program prints about itself.
async fn help(words: &[String]) -> Result<String, String> {
    let (program, arguments) = words.split_first().ok_or("is no command")?;
    let errors = Arc::new(Mutex::new(Vec::new()));
    let kept = errors.clone();
    let keep = move |line: &str| {
        let mut lines = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() < MAX_LINES {
            lines.push(line.to_owned());
        }
    };
    let child = Child::command(program).args(arguments).arg("--help").stderr(Stderr::lines(keep));
    // What pages its help does not wait for a terminal.
    let child = child.env("PAGER", "cat").env("MANPAGER", "cat").env("NO_COLOR", "1").env("COLUMNS", "200");
    let ran = timeout(TIMEOUT, child.run("", MAX_BYTES, |_| {})).await;
    let ran = ran.map_err(|_| format!("took longer than {TIMEOUT:?}: write the tool by hand"))?;
    let ran = ran.map_err(|error| format!("cannot be run: {error}"))?;
    let help = String::from_utf8_lossy(&ran.stdout).into_owned();
    let errors = errors.lock().unwrap_or_else(PoisonError::into_inner).join("\n");
    // Some programs print their help as an error, or have no `--help` and print their usage.
    let help = if help.trim().is_empty() { errors } else { help };
    match help.trim().is_empty() {
        true => Err("printed nothing: write the tool by hand".to_owned()),
        false => Ok(help),
    }
}
