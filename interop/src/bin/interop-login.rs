//! Logs in with an authorization server of somebody else's: `interop-login URL [CASE…]`. `oidc/provider.mjs` says the URL;
//! cases are chosen by a part of their name.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "whoever starts it reads that")]

use std::{
    env,
    process::ExitCode,
    time::{Duration, Instant},
};

use interop::login::{CASES, Case, Provider};

/// The timeout of a case.
const TIMEOUT: Duration = Duration::from_secs(20);

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let Some((setup, only)) = args.split_first() else {
        eprintln!("usage: interop-login URL [CASE…]");
        return ExitCode::from(2);
    };
    let provider = match Provider::at(setup).await {
        Ok(provider) => provider,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let is_wanted =
        |case: &&Case| only.is_empty() || only.iter().any(|part| case.name.contains(part.as_str()));
    let (mut ran, mut failed) = (0, 0);
    for Case { name, run } in CASES.iter().filter(is_wanted) {
        let start = Instant::now();
        let outcome = match tokio::time::timeout(TIMEOUT, run(&provider)).await {
            Ok(Ok(outcome)) => format!("ok: {outcome}"),
            Ok(Err(error)) => format!("FAILED: {error}"),
            Err(_) => format!("FAILED: nothing within {TIMEOUT:?}"),
        };
        println!("    {name}: {outcome} ({:.1} s)", start.elapsed().as_secs_f64());
        ran += 1;
        failed += usize::from(outcome.starts_with("FAILED"));
    }
    if ran == 0 {
        let names: Vec<_> = CASES.iter().map(|case| case.name).collect();
        eprintln!("no case has that in its name; there are\n  {}", names.join("\n  "));
        return ExitCode::FAILURE;
    }
    println!("{} of {ran} cases work", ran - failed);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
