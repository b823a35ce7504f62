use clap::Parser;

use crate::{
    args::{GlobalArgs, examples},
    verbs::Verb,
};

/// The Model Context Protocol on the command line.
#[derive(Debug, Parser)]
#[command(
    name = "pintle",
    version,
    before_help = examples(&[
        ("pintle", "a tour: shows every message between a server and a client"),
        ("pintle ls demo", "what the demo server offers"),
        ("pintle ls -- uvx mcp-server-git", "what a program offers"),
        ("pintle call https://example.com/mcp search query=tides", "call a tool of a server at a URL"),
        ("pintle call demo tide --help", "the arguments of a tool"),
    ]),
    after_help = TARGETS,
    help_template = "{about}\n\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}",
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
}

const TARGETS: &str = "\
Targets:
  demo                    the demo server, in this process
  https://host/path       a server at a URL
  host[:port][/path]      the same; `https`, on this machine `http`; the path is `/mcp` if there is none
  NAME                    a server that Claude Code, Cursor, VS Code, … have configured for you
  FILE.json:NAME          a server of a configuration file, also `.toml`
  -- PROGRAM [ARGS]       a program, at the end of the line

`pintle VERB --help` has examples and options of each verb.";
