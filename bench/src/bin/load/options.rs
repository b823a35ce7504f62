//! The command-line options.

use std::time::Duration;

use crate::{cores::Cores, program::Program};

pub(crate) const USAGE: &str = "usage: load [<rounds>] [--seconds <n>] [--quick] [--only <words>] [--plots <folder>] \
[--data <file>] <name=command>… [--client <name=command>]…";

/// The options: what to measure, and where to write the results.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) rounds: usize,
    /// No round begins that would end later.
    pub(crate) time: Duration,
    /// Only what a change is judged by: no curves, and no more than 10,000 sessions.
    pub(crate) quick: bool,
    /// Only rows with these words in their name.
    pub(crate) only: String,
    pub(crate) plots: Option<String>,
    pub(crate) data: Option<String>,
    pub(crate) servers: Vec<Program>,
    pub(crate) clients: Vec<Program>,
}

impl Options {
    pub(crate) fn read(
        words: impl IntoIterator<Item = String>,
        cores: Option<Cores>,
    ) -> Result<Self, String> {
        let mut this = Self {
            rounds: 5,
            time: Duration::from_secs(600),
            quick: false,
            only: String::new(),
            plots: None,
            data: None,
            servers: Vec::new(),
            clients: Vec::new(),
        };
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("`{word}` wants a value\n{USAGE}"));
            match word.as_str() {
                "--seconds" => {
                    let seconds =
                        value()?.parse().map_err(|_| format!("`--seconds` wants a number\n{USAGE}"))?;
                    this.time = Duration::from_secs(seconds);
                }
                "--quick" => this.quick = true,
                "--only" => this.only = value()?,
                "--plots" => this.plots = Some(value()?),
                "--data" => this.data = Some(value()?),
                "--client" => this.clients.push(program(&value()?, cores)?),
                _ => match word.parse() {
                    Ok(rounds) => this.rounds = rounds,
                    Err(_) => this.servers.push(program(&word, cores)?),
                },
            }
        }
        if this.servers.is_empty() { Err(USAGE.to_owned()) } else { Ok(this) }
    }
}

fn program(text: &str, cores: Option<Cores>) -> Result<Program, String> {
    Program::parse(text, cores).ok_or_else(|| format!("`{text}` is not `name=command`\n{USAGE}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Options, String> {
        Options::read(words.iter().map(|word| (*word).to_owned()), None)
    }

    #[test]
    fn servers_clients_and_how_long() {
        let options = read(&[
            "3",
            "limit=a/limit",
            "ts=node a.mjs",
            "--client",
            "rmcp=b",
            "--seconds",
            "80",
            "--quick",
        ])
        .unwrap();
        assert_eq!((options.rounds, options.time.as_secs(), options.quick), (3, 80, true));
        let names =
            |programs: &[Program]| programs.iter().map(|program| program.name.clone()).collect::<Vec<_>>();
        assert_eq!(
            (names(&options.servers).join(" "), names(&options.clients)),
            ("limit ts".to_owned(), vec!["rmcp".to_owned()])
        );
    }

    #[test]
    fn what_is_not_understood_is_said() {
        assert!(read(&[]).unwrap_err().starts_with("usage: load"));
        assert!(read(&["--fast"]).unwrap_err().starts_with("`--fast` is not `name=command`"));
        assert!(read(&["a=b", "--only"]).unwrap_err().starts_with("`--only` wants a value"));
    }
}
