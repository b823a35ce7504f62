use std::process::ExitCode;

/// How the command ended. The numbers do not change: scripts compare them. `docs/cli.md` has the table.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub(crate) enum Exit {
    Success = 0,
    Usage = 1,
    Server = 2,
    Authorization = 3,
    Unreachable = 4,
    Tool = 5,
    Findings = 6,
    NeedsInput = 7,
    Timeout = 8,
    Interrupted = 130,
    Terminated = 143,
}

impl Exit {
    /// All of them, each with its name in JSON and its meaning.
    pub(crate) const TABLE: [(Self, &'static str, &'static str); 11] = [
        (Self::Success, "success", "the verb did what it was asked for"),
        (Self::Usage, "usage", "the command line is wrong: an option, a target, a name, an argument"),
        (Self::Server, "server", "the server returned an error, or violated the protocol"),
        (Self::Authorization, "authorization", "the server wants a token, or does not accept the one it got"),
        (
            Self::Unreachable,
            "unreachable",
            "no MCP server was reached: the program, the address or the URL is wrong",
        ),
        (Self::Tool, "tool", "the tool ran and failed; its result is printed"),
        (Self::Findings, "findings", "a check has findings"),
        (
            Self::NeedsInput,
            "needs-input",
            "input is needed that was not given: an answer to a server, or an approval",
        ),
        (Self::Timeout, "timeout", "there was no answer in time"),
        (Self::Interrupted, "interrupted", "the user pressed Ctrl-C"),
        (
            Self::Terminated,
            "terminated",
            "the process was asked to end, by `SIGTERM` or because its terminal was closed; a server that stopped has 0",
        ),
    ];

    /// The name in JSON.
    pub(crate) fn name(self) -> &'static str {
        Self::TABLE.iter().find(|(exit, ..)| *exit == self).map_or("failure", |(_, name, _)| name)
    }

    pub(crate) fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_has_every_code() {
        let page = include_str!("../../../docs/cli.md");
        for (exit, name, meaning) in Exit::TABLE {
            let row = format!("| {} | `{name}` | {meaning} |", exit.code());
            assert!(page.contains(&row), "docs/cli.md lacks: {row}");
        }
    }
}
