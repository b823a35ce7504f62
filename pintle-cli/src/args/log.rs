use clap::Args;
use tracing_subscriber::filter::Targets;

use crate::{
    failure::Failure,
    output::{LogFormat, LogSettings, Output, SERVICE},
};

/// Options of the log, which every service has.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Log")]
pub(crate) struct LogArgs {
    /// The levels and targets that are logged to standard error: `off`, `warn`, `pintle=debug,warn`; the default is warnings, and what
    /// the service notes
    #[arg(long, value_name = "FILTER", value_parser = filter)]
    log: Option<Targets>,
    /// The form of the lines; with `--json`, the default is `json`
    #[arg(long, value_name = "FORM")]
    log_format: Option<LogFormat>,
}

impl LogArgs {
    /// Has the events of this process, and the notes of the output, logged from now on.
    pub(crate) fn start(&self, output: &Output) -> Result<(), Failure> {
        let noted = match (output.verbosity(), output.settings().only_results) {
            (1.., _) => tracing::Level::DEBUG,
            (0, false) => tracing::Level::INFO,
            (0, true) => tracing::Level::WARN,
        };
        let default = || Targets::new().with_default(tracing::Level::WARN).with_target(SERVICE, noted);
        let form = if output.settings().json { LogFormat::Json } else { LogFormat::Text };
        output.start_log(LogSettings {
            filter: self.log.clone().unwrap_or_else(default),
            format: self.log_format.unwrap_or(form),
        })
    }
}

fn filter(text: &str) -> Result<Targets, String> {
    text.parse().map_err(|error| {
        format!("{error}: write levels such as `warn`, or targets with them, such as `pintle=debug`")
    })
}
