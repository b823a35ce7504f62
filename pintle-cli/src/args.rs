//! The command-line arguments.

/// A command.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Command {
    Tour,
    Demo,
    Help,
    Version,
}

const COMMANDS: [(&str, Command); 4] = [
    ("tour", Command::Tour),
    ("demo", Command::Demo),
    ("help", Command::Help),
    ("version", Command::Version),
];

pub(crate) const HELP: &str = "\
pintle: the Model Context Protocol on the command line

  pintle            a tour: shows every message between a server and a client
  pintle demo       serves the server of the tour on standard input and output, for any client
  pintle help       prints this help
  pintle version    prints the version

In the repository, `cargo run -- demo` runs `pintle demo`.
";

/// Parses the arguments. An error is one line that says what to do.
pub(crate) fn parse(typed: impl IntoIterator<Item = String>) -> Result<Command, String> {
    let mut typed = typed.into_iter();
    let Some(word) = typed.next() else { return Ok(Command::Tour) };
    let name = match word.as_str() {
        "-h" | "--help" => "help",
        "-V" | "--version" => "version",
        word => word,
    };
    let Some((name, command)) = COMMANDS.iter().find(|(known, _)| *known == name) else {
        let shown: String = word.chars().take(40).collect();
        return Err(match near(&word) {
            Some(near) => format!("no such command: `{shown}`; did you mean `pintle {near}`?"),
            None => format!("no such command: `{shown}`; `pintle help` lists them"),
        });
    };
    match typed.next() {
        // Help ignores further arguments.
        Some(_) if *command != Command::Help => Err(format!("`{name}` takes no arguments; remove them")),
        _ => Ok(*command),
    }
}

/// Returns the command that was meant, if at most a third of its letters differ.
fn near(word: &str) -> Option<&'static str> {
    let word: String = word.trim_start_matches('-').to_lowercase().chars().take(20).collect();
    let distances = COMMANDS.iter().map(|(name, _)| (strsim::osa_distance(name, &word), *name));
    let (distance, name) = distances.min()?;
    (distance <= name.len().div_ceil(3)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(line: &str) -> Result<Command, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn a_word_is_a_command_and_none_is_the_tour() {
        assert_eq!(typed(""), Ok(Command::Tour));
        assert_eq!(typed("demo"), Ok(Command::Demo));
        assert_eq!(typed("--help"), Ok(Command::Help));
        assert_eq!(typed("help me please"), Ok(Command::Help));
        assert_eq!(typed("-V"), Ok(Command::Version));
    }

    #[test]
    fn a_wrong_word_gets_one_line_that_says_what_to_do() {
        assert_eq!(typed("dmeo"), Err("no such command: `dmeo`; did you mean `pintle demo`?".into()));
        assert_eq!(typed("--demo"), Err("no such command: `--demo`; did you mean `pintle demo`?".into()));
        assert_eq!(
            typed("frobnicate"),
            Err("no such command: `frobnicate`; `pintle help` lists them".into())
        );
        assert_eq!(typed("demo 7"), Err("`demo` takes no arguments; remove them".into()));
    }
}
