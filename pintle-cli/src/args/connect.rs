use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use pintle::proto::{Limits, Revision};

use super::duration;
use crate::connection::SharedConnection;

/// Options of the connection, which every verb with a target has.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Connection")]
pub(crate) struct ConnectArgs {
    /// A header of every request to a URL
    #[arg(long = "header", short = 'H', value_name = "NAME: VALUE")]
    pub(crate) headers: Vec<String>,
    /// The environment variable with the token for a URL
    #[arg(long, value_name = "NAME")]
    pub(crate) token_env: Option<String>,
    /// A variable in the environment of a program; without a value, the one of this process
    #[arg(long = "env", short = 'e', value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<String>,
    /// The directory to start a program in
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// The value of an input of a configured server, which VS Code asks for: `${input:NAME}`
    #[arg(long = "input", value_name = "NAME=VALUE")]
    pub(crate) inputs: Vec<String>,
    /// The era of the protocol to use
    #[arg(long, value_name = "ERA", default_value = "auto", hide_default_value = true)]
    pub(crate) era: EraArg,
    /// The revision of the protocol to use
    #[arg(long, value_name = "DATE", value_parser = revision)]
    pub(crate) revision: Option<Revision>,
    /// How long to wait for an answer: `500ms`, `10s`, `2m`
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// The program of the server and its arguments
    #[arg(last = true, value_name = "PROGRAM", hide = true)]
    pub(crate) command: Vec<OsString>,
    /// A connection that is open already: that of `repl`.
    #[arg(skip)]
    pub(crate) open: Option<SharedConnection>,
}

impl ConnectArgs {
    /// Returns an option that was given, if there is one.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let Self { headers, token_env, env, cwd, inputs, era, revision, timeout, command, open: _ } = self;
        let options = [
            ("--header", !headers.is_empty()),
            ("--token-env", token_env.is_some()),
            ("--env", !env.is_empty()),
            ("--cwd", cwd.is_some()),
            ("--input", !inputs.is_empty()),
            ("--era", *era != EraArg::Auto),
            ("--revision", revision.is_some()),
            ("--timeout", timeout.is_some()),
            ("--", !command.is_empty()),
        ];
        options.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
    }
}

/// The eras that a client may use.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub(crate) enum EraArg {
    // No doc comments: clap would print a longer help with them.
    #[default]
    Auto,
    #[value(alias = "modern")]
    Stateless,
    #[value(alias = "legacy")]
    Session,
    // One after the other, for `bench`.
    #[value(hide = true)]
    Both,
}

fn revision(text: &str) -> Result<Revision, String> {
    text.parse().map_err(|_| {
        let all: Vec<_> = Revision::all().map(|revision| revision.as_str()).collect();
        format!("there are {}", all.join(", "))
    })
}

/// Reads a number of bytes such as `64MiB`, from 64 KiB to 1 GiB.
pub(crate) fn message_size(text: &str) -> Result<usize, String> {
    let wrong = || "write it as `64MiB`, from `64KiB` to `1GiB`".to_owned();
    let split = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit: usize = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        _ => return Err(wrong()),
    };
    let bytes = number.parse::<usize>().ok().and_then(|number| number.checked_mul(unit));
    bytes.filter(|bytes| (64 << 10..=1 << 30).contains(bytes)).ok_or_else(wrong)
}

/// Returns the limits of a server or client whose messages have at most so many bytes.
pub(crate) fn message_limits(max_message: Option<usize>) -> Limits {
    let mut limits = Limits::default();
    limits.message_bytes = max_message.unwrap_or(limits.message_bytes);
    limits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_a_unit_and_bounds() {
        assert_eq!(message_size("65536"), Ok(64 << 10));
        assert_eq!(message_size("64MiB"), Ok(64 << 20));
        assert_eq!(message_size("1g"), Ok(1 << 30));
        for bad in ["", "MiB", "1KiB", "2GiB", "1.5MiB", "-1", "99999999999999999999", "64MB "] {
            assert!(message_size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_time_has_a_unit() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        for bad in ["", "s", "5 s", "5d", "1.2.3s", "-1s"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
