//! Calls of a tool, as many as there can be, and how long they took.

mod histogram;
mod load;
mod report;

use std::{
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use pintle::types::{ErrorCode, JsonObject};

use crate::{
    args::{EraArg, HELP, TargetArgs, duration, examples, quoted},
    arguments::{self, read_words, signature},
    failure::{Exit, Failure},
    output::Output,
    storage::write_private,
    targets::Endpoint,
    verbs::call,
};
use load::{Load, Measurement};
use report::BenchReport;

/// How long calls are made, if nothing else is given.
const DURATION: Duration = Duration::from_secs(10);
/// How long calls are made, if their number is given.
const MAX_DURATION: Duration = Duration::from_secs(600);
/// The largest saved result that is read.
const MAX_REPORT: u64 = 1 << 20;

/// Call a tool many times, and print how long it took
#[derive(Args, Debug)]
#[command(
    before_help = examples(&[
        ("pintle bench demo tide port=bergen hour=4", "for ten seconds"),
        ("pintle bench localhost:8000 tide port=bergen hour=4 -c 64 -d 30s", "64 calls at a time"),
        ("pintle bench demo tide port=bergen hour=4 -n 1000 --era both", "1000 calls in each era"),
        ("pintle bench demo tide port=bergen hour=4 --save before.json", "then `--compare before.json`"),
    ]),
    help_template = HELP,
    override_usage = "pintle bench TARGET TOOL [NAME=VALUE]...",
)]
pub(crate) struct BenchArgs {
    /// The number of calls at the same time
    #[arg(long, short, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1024))]
    concurrency: u32,
    /// How long to make calls: `500ms`, `10s`, `2m`
    #[arg(long, short, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    /// The number of calls in each era
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Save the result in this file
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Print the change since this saved result
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,
    #[command(flatten)]
    target: TargetArgs,
}

pub(in crate::verbs) async fn run(args: BenchArgs, output: &Output) -> Result<(), Failure> {
    let BenchArgs { concurrency, duration, count, save, compare, target } = args;
    let eras = match target.connect.era {
        EraArg::Both => vec![EraArg::Stateless, EraArg::Session],
        era => vec![era],
    };
    // Read before the calls are made.
    let before = compare.as_deref().map(read_report).transpose()?;
    let (endpoint, mut words) = Endpoint::take("bench", target)?;
    if words.is_empty() {
        return Err(Failure::usage("no tool is given", endpoint.line("ls", &["tools"])));
    }
    let mut load = Load {
        tool: words.remove(0),
        arguments: JsonObject::new(),
        concurrency,
        count: count.unwrap_or(u64::MAX),
        duration: duration.unwrap_or(if count.is_some() { MAX_DURATION } else { DURATION }),
    };
    let mut report = BenchReport::new(endpoint.label(), &load);
    let mut failed = None;
    let mut is_measured = false;
    for era in &eras {
        match measure(&endpoint.with_era(*era), &mut load, &words, output).await {
            Ok((revision, measured)) => {
                report.add(revision, &measured);
                is_measured = true;
                failed = failed.or(errors_of(&measured, &endpoint, &load));
            }
            // The server may have one era only.
            Err(failure) if eras.len() > 1 && failure.exit == Exit::Server => {
                output.note(format_args!("not measured: {}", failure.message));
                failed = failed.or(Some(failure));
            }
            Err(failure) => return Err(failure),
        }
    }
    if is_measured {
        if let Some(path) = &save {
            write_report(path, &report)?;
        }
        if let Some(before) = &before {
            report.compare(before);
        }
        output.result(&report, |text| report.print(output.width(), text))?;
    }
    failed.map_or(Ok(()), Err)
}

/// Makes the calls in one era. The first is not counted.
async fn measure(
    endpoint: &Endpoint,
    load: &mut Load,
    words: &[String],
    output: &Output,
) -> Result<(pintle::proto::Revision, Measurement), Failure> {
    let connection = endpoint.connect(&endpoint.client(output), output).await?;
    let tool = call::find(&connection, &load.tool, endpoint).await?;
    let refused = |message: String| {
        Failure::usage(message, endpoint.line("call", &[&load.tool, "--help"])).detail(signature(&tool))
    };
    let typed = read_words(words).await.map_err(refused)?;
    load.arguments = arguments::of_tool(&tool, typed).map_err(refused)?;
    call::check(&tool, &load.arguments).map_err(refused)?;
    let first = connection.call(&*load.tool).args(load.arguments.clone()).send().await;
    let first = first.map_err(|error| match &error {
        pintle::Error::Rpc(rpc) if rpc.code == ErrorCode::MISSING_CLIENT_CAPABILITY => {
            let message = format!(
                "`{}` requires user input, which a measurement cannot give: measure another tool",
                load.tool
            );
            Failure::new(Exit::Server, message, endpoint.line("ls", &["tools"]))
        }
        _ => endpoint.explain(&error),
    })?;
    if first.is_error == Some(true) {
        call::print(&first, None, output)?;
        return Err(call::failed(&load.tool, endpoint));
    }
    output.note(format_args!(
        "{}: calling `{}`",
        if connection.facts().keeps_session { "session" } else { "stateless" },
        load.tool
    ));
    let measured = load.run(&connection, endpoint).await?;
    let revision = connection.revision();
    connection.close().await;
    Ok((revision, measured))
}

/// Returns the failure of calls that failed: that of the most frequent class.
fn errors_of(measured: &Measurement, endpoint: &Endpoint, load: &Load) -> Option<Failure> {
    let failed: u64 = measured.errors.values().map(|errors| errors.count).sum();
    let worst = measured.errors.values().max_by_key(|errors| errors.count)?;
    let all = failed + measured.times.count();
    let message = format!("{failed} of {all} calls failed: {}", worst.example);
    Some(Failure::new(worst.exit, message, endpoint.line("call", &[&load.tool, "--help"])))
}

fn read_report(path: &Path) -> Result<BenchReport, Failure> {
    let shown = path.display().to_string();
    let failed = |reason: String| {
        let message = format!("`{shown}` is not a saved result: {reason}");
        Failure::usage(message, format!("head -c 200 {}", quoted(&shown)))
    };
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_REPORT).read_to_end(&mut bytes));
    read.map_err(|error| failed(error.to_string()))?;
    BenchReport::parse(&bytes).map_err(failed)
}

fn write_report(path: &Path, report: &BenchReport) -> Result<(), Failure> {
    let bytes = serde_json::to_vec(report).map_err(|error| Failure::internal(&error))?;
    write_private(path, &bytes).map_err(|error| {
        let shown = path.display().to_string();
        Failure::usage(format!("`{shown}` cannot be written: {error}"), format!("ls -ld {}", quoted(&shown)))
    })
}
