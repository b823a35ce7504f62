//! `pintle repl`: lines of a file, and lines that are typed at a terminal.

use std::{
    fs,
    io::Write as _,
    process::{Command, Stdio},
};

use crate::support::{HttpServing, Printed, pintle};

/// Runs lines as a script.
fn script(words: &[&str], lines: &str) -> Printed {
    let mut command = pintle();
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    process.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = process.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Printed { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

#[test]
fn lines_share_a_connection() {
    // What one line posts, another reads: the demo server of another connection would not have it.
    let lines = "call post text='A storm: stay in.'\n\n# a comment\nread harbour://notice\n";
    let done = script(&["repl", "demo"], lines);
    assert_eq!((done.code, done.stdout.as_str()), (Some(0), "Posted.\nA storm: stay in.\n"), "{done:?}");
}

#[test]
fn the_exit_code_is_that_of_the_last_line_that_failed() {
    let lines = "call tide\ncall tide port=bergen hour=4 --pick .structuredContent.rising\nraw no/such/method\nls tools --pick .tools[0].name\n";
    let done = script(&["repl", "demo"], lines);
    assert_eq!((done.code, done.stdout.as_str()), (Some(2), "true\ntide\n"), "{done:?}");
    assert!(done.stderr.contains("line 1: call tide\n  try: call tide --help\n"), "{}", done.stderr);
    assert!(done.stderr.contains("line 3: raw no/such/method"), "{}", done.stderr);
    // Nothing after it is run.
    assert_eq!(script(&["repl", "demo"], "exit\nnonsense\n").code, Some(0));
    assert_eq!(script(&["repl", "127.0.0.1:1"], "ping\n").code, Some(4));
}

#[test]
fn options_of_the_connection_and_other_verbs_are_refused() {
    for (line, message) in [
        ("ls --era session", "`--era` is for a new connection, and this one is open: leave it out"),
        ("ping -- sh", "`--` is for a new connection"),
        ("call tide -", "standard input has the lines of `repl`"),
        ("login demo", "`login` is not a verb here"),
        ("call 'tide", "the quote ' is not closed"),
    ] {
        let done = script(&["repl", "demo"], line);
        assert_eq!(done.code, Some(1), "{done:?}");
        assert!(done.stderr.contains(message) && done.stderr.contains("  try: "), "{line}: {}", done.stderr);
    }
}

#[test]
fn the_era_is_switched() {
    let demo = HttpServing::demo();
    for target in ["demo", &demo.url] {
        let done = script(&["repl", target, "-q"], "era\nera session\nping --json\nera auto\n");
        let lines: Vec<_> = done.stdout.lines().collect();
        assert_eq!((done.code, lines.len()), (Some(0), 4), "{done:?}");
        assert!(lines[0].ends_with(", without a session") && lines[0] == lines[3], "{done:?}");
        assert!(lines[1].ends_with(", with a session"), "{done:?}");
    }
}

#[test]
fn a_program_that_ended_is_started_again() {
    // It answers one conversation and exits when a file says so.
    let folder = std::env::temp_dir().join(format!("pintle-cli-repl-again-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let pid = folder.join("pid");
    let server = format!("echo $$ >> '{0}'; exec '{1}' demo", pid.display(), env!("CARGO_BIN_EXE_pintle"));
    let mut command = pintle();
    command.args(["repl", "-q", "--", "sh", "-c", &server]);
    let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = process.stdin.take().unwrap();
    let mut printed = std::io::BufReader::new(process.stdout.take().unwrap());
    let mut answer = String::new();
    writeln!(lines, "ping --json").unwrap();
    std::io::BufRead::read_line(&mut printed, &mut answer).unwrap();
    let number = fs::read_to_string(&pid).unwrap();
    assert!(Command::new("kill").args(["-9", number.trim()]).status().unwrap().success());
    // The end of the program may be noticed by the first of them.
    writeln!(lines, "ping --json\nping --json").unwrap();
    drop(lines);
    std::io::Read::read_to_string(&mut printed, &mut answer).unwrap();
    process.wait().unwrap();
    assert!(answer.lines().count() >= 2, "{answer}");
    assert_eq!(fs::read_to_string(&pid).unwrap().lines().count(), 2);
    fs::remove_dir_all(&folder).unwrap();
}

/// A user at a terminal.
#[cfg(target_os = "linux")]
mod terminal {
    use std::{fs, io::Read as _, path::PathBuf};

    use crate::{
        hostile::assert_harmless,
        support::{
            HttpServing, hostile_server, pintle,
            pty::{TerminalSession, converse},
            state_directory, typed,
        },
    };

    const UP: &str = "\u{1b}[A";
    const CTRL_C: &str = "\u{3}";
    const CTRL_D: &str = "\u{4}";

    /// A command with a state directory of its own.
    fn repl(test: &str, words: &[&str]) -> (std::process::Command, PathBuf) {
        let state = state_directory().join(format!("repl-{test}"));
        let mut command = pintle();
        command.env("PINTLE_STATE_DIR", &state).env("NO_COLOR", "1").arg("repl").args(words);
        (command, state)
    }

    #[test]
    fn words_are_completed() {
        let (command, _) = repl("completion", &["demo"]);
        let (code, shown) = converse(
            &command,
            80,
            &[
                ("demo> ", "cal\t"),
                ("call ", "ti\t"),
                ("tide ", "po\t"),
                ("port=", "b\t"),
                ("port=bergen ", "ho\t"),
                ("hour=", "4\r"),
                ("metres", ""),
                // The server completes the values of prompts and templates.
                ("demo> ", "prompt pas\t"),
                ("passage ", "to=b\t"),
                ("to=bergen ", "\r"),
                ("user:", ""),
                ("demo> ", "read harbour://t\t"),
                ("harbour://tides/{port}/{hour} ", "por\t"),
                ("port=", "le\t"),
                ("port=lerwick ", "hour=3\r"),
                ("rising", ""),
                // Those that are possible are listed.
                ("demo> ", "call s\t"),
                ("sail", ""),
                ("season", ""),
                ("signal", CTRL_C),
                ("[?2004l", ""),
                ("demo> ", "era s\t"),
                ("session", CTRL_C),
                ("[?2004l", ""),
                ("demo> ", CTRL_D),
            ],
        );
        assert_eq!(code, Some(0), "{shown}");
    }

    #[test]
    fn lines_are_remembered_but_not_their_secrets() {
        let (command, state) = repl("history", &["demo"]);
        let (code, shown) = converse(
            &command,
            80,
            &[
                ("demo> ", "call tide port=bergen hour=4\r"),
                ("demo> ", "call post text=x password=hunter2\r"),
                ("demo> ", " call post text=unseen\r"),
                ("demo> ", "call berth\r"),
                ("boat: ", "My secret boat\r"),
                ("nights: ", "2\r"),
                ("[yes]: ", "\r"),
                ("My secret boat, 2 nights.", ""),
                ("demo> ", CTRL_D),
            ],
        );
        assert_eq!(code, Some(0), "{shown}");
        let file = state.join("repl-history");
        assert_eq!(fs::read_to_string(&file).unwrap(), "call tide port=bergen hour=4\ncall berth\n");
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        }
        // The next one has them.
        let up = format!("{UP}{UP}");
        let pieces = [("demo> ", up.as_str()), ("call tide port=bergen hour=4", "\r"), ("demo> ", CTRL_D)];
        let (code, shown) = converse(&command, 80, &pieces);
        assert_eq!(code, Some(0), "{shown}");
        let (command, _) = repl("history", &["demo", "--no-history"]);
        let (_, shown) = converse(
            &command,
            80,
            &[("demo> ", UP), ("", "ping\r"), ("answered in", ""), ("demo> ", CTRL_D)],
        );
        assert!(!shown.contains("call"), "{shown}");
        assert_eq!(fs::read_to_string(&file).unwrap().lines().last(), Some("call tide port=bergen hour=4"));
    }

    #[test]
    fn notifications_are_above_the_prompt() {
        // The change comes from elsewhere, while a line is being typed.
        let demo = HttpServing::demo();
        let (command, _) = repl("notices", &[&demo.url]);
        let prompt: String = demo.url.chars().take(24).collect::<String>() + "> ";
        let mut session = TerminalSession::start(&command, 80);
        session.expect(&prompt);
        session.type_text("subscribe harbour://notice\r");
        session.expect(&prompt);
        session.type_text("pi");
        session.expect("pi");
        let done = typed(&["call", &demo.url, "post", "text=Storm"]);
        assert_eq!(done.code, Some(0), "{done:?}");
        session.expect("* updated harbour://notice");
        // The line is shown again below it, and goes on.
        session.expect(&format!("{prompt}pi"));
        session.type_text("ng\r");
        session.expect("answered in");
        session.expect(&prompt);
        session.type_text(CTRL_D);
        let (code, shown) = session.finish();
        assert_eq!(code, Some(0), "{shown}");
    }

    #[test]
    fn interrupts_cancel_the_call_and_leave_no_process() {
        let (folder, fifo, script) = crate::terminal::interrupt::demo_with_fifo("repl");
        let alive =
            std::thread::spawn(move || fs::File::open(&fifo).unwrap().read_to_end(&mut Vec::new()).unwrap());
        let (command, _) = repl("interrupt", &["--", "sh", "-c", &script]);
        let (code, shown) = converse(
            &command,
            40,
            &[
                ("sh> ", "call anchor\r"),
                ("the anchor holds", CTRL_C),
                ("interrupted", ""),
                // The connection is the same, and a question can be interrupted too.
                ("sh> ", "call berth\r"),
                ("boat: ", CTRL_C),
                ("interrupted", ""),
                // Nothing runs: the line is dropped.
                ("sh> ", "nonsense"),
                ("nonsense", CTRL_C),
                ("sh> ", CTRL_D),
            ],
        );
        assert_eq!(code, Some(0), "{shown}");
        // Ends when all of them are gone.
        assert_eq!(alive.join().unwrap(), 0);
        assert!(!shown.contains("connected again"), "{shown}");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn it_fits_a_narrow_terminal_and_has_no_colours() {
        let (command, _) = repl("narrow", &["demo"]);
        let long = "call tide port=bergen hour=1111111111111111111111111111111111111111111111111111";
        let (code, shown) = converse(
            &command,
            40,
            &[
                ("demo> ", long),
                ("1111", CTRL_C),
                // The line is left.
                ("[?2004l", ""),
                ("demo> ", "ls tools\r"),
                ("Opens the season", ""),
                ("demo> ", CTRL_D),
            ],
        );
        assert_eq!(code, Some(0), "{shown}");
        // Colours end with `m`; the cursor is moved by other letters.
        let has_colour = shown.split('\u{1b}').skip(1).any(|rest| {
            rest.strip_prefix('[').is_some_and(|rest| {
                rest.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == ';')
                    .starts_with('m')
            })
        });
        assert!(!has_colour, "{shown:?}");
        let (mut coloured, _) = repl("coloured", &["demo"]);
        coloured.env_remove("NO_COLOR");
        let (_, shown) = converse(&coloured, 40, &[("demo", CTRL_D)]);
        assert!(shown.contains("\u{1b}[1;36mdemo\u{1b}[0m> "), "{shown:?}");
    }

    #[test]
    fn nothing_hostile_reaches_the_terminal() {
        let url = hostile_server::start();
        let (command, _) = repl("hostile", &[&url]);
        let prompt: String = url.chars().take(24).collect::<String>() + "> ";
        let (code, shown) = converse(
            &command,
            100,
            &[
                (&prompt, "call \t"),
                (&prompt, "plain\r"),
                (&prompt, "ls\r"),
                (&prompt, "prompt \t\r"),
                (&prompt, "read x:y\r"),
                (&prompt, "complete p a=\t\r"),
                (&prompt, "call fails\r"),
                (&prompt, CTRL_D),
            ],
        );
        assert_eq!(code, Some(0), "{shown}");
        // The sequences of the editor, and nothing else.
        let mut text = shown;
        for own in [
            "\u{1b}[?2004h",
            "\u{1b}[?2004l",
            "\u{1b}[?2026h",
            "\u{1b}[?2026l",
            "\u{1b}[K",
            "\u{1b}[2K",
            "\u{7}",
            "\r",
        ] {
            text = text.replace(own, "");
        }
        let text: String = without_moves(&text);
        assert_harmless("repl", &text);
    }

    /// Removes what moves the cursor to a column.
    fn without_moves(text: &str) -> String {
        let mut parts = text.split("\u{1b}[");
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let rest = part.trim_start_matches(|letter: char| letter.is_ascii_digit());
            match rest.strip_prefix(['A', 'B', 'C', 'D', 'J']) {
                Some(rest) => out.push_str(rest),
                None => out.push_str(&format!("\u{1b}[{part}")),
            }
        }
        out
    }
}
