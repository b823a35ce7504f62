//! `pintle bench`, by counts: no test depends on how long it takes.

use serde_json::Value;

use super::fresh_file;
use crate::support::{HttpServing, Printed, typed};

const CALL: [&str; 3] = ["tide", "port=bergen", "hour=4"];

fn bench(target: Option<&str>, options: &[&str]) -> Printed {
    let words: Vec<_> =
        ["bench"].into_iter().chain(target).chain(CALL).chain(options.iter().copied()).collect();
    typed(&words)
}

#[test]
fn calls_are_counted_in_each_era_over_every_transport() {
    let program = env!("CARGO_BIN_EXE_pintle");
    let demo = HttpServing::demo();
    let targets: [(Option<&str>, &[&str]); 3] =
        [(Some("demo"), &[]), (None, &["--", program, "demo"]), (Some(&demo.url), &[])];
    for (target, end) in targets {
        let options = [&["-n", "20", "-c", "4", "--era", "both", "--json"], end].concat();
        let measured = bench(target, &options);
        assert_eq!((measured.code, measured.stderr.as_str()), (Some(0), ""));
        let report: Value = serde_json::from_str(&measured.stdout).unwrap();
        assert_eq!(
            (&report["version"], &report["tool"], &report["concurrency"]),
            (&1.into(), &"tide".into(), &4.into())
        );
        let runs = report["runs"].as_array().unwrap();
        assert_eq!(
            runs.iter().map(|run| run["era"].as_str().unwrap()).collect::<Vec<_>>(),
            ["stateless", "session"]
        );
        for run in runs {
            assert_eq!((&run["calls"], &run["errors"]), (&20.into(), &serde_json::json!({})));
            let rows = run["histogram"].as_array().unwrap();
            assert_eq!(rows.iter().map(|row| row["count"].as_u64().unwrap()).sum::<u64>(), 20);
            let latency = |name: &str| run["latency"][name].as_f64().unwrap();
            let rising = ["min", "p50", "p90", "p99", "p999", "max"].map(latency);
            assert!(rising[0] > 0.0 && rising.is_sorted(), "{run}");
            assert!(run["rate"].as_f64().unwrap() > 0.0, "{run}");
        }
    }
}

#[test]
fn people_get_percentiles_and_a_histogram_and_the_change() {
    let path = fresh_file("bench.json");
    let file = path.to_str().unwrap();
    let first = bench(Some("demo"), &["-n", "10", "-c", "2", "--save", file]);
    assert_eq!(first.code, Some(0), "{first:?}");
    assert_eq!(first.stderr, "stateless: calling `tide`\n");
    let lines: Vec<_> = first.stdout.lines().collect();
    assert!(lines[0].starts_with("stateless 2026-07-28 10 calls in "), "{first:?}");
    assert!(lines[0].ends_with(" calls/s") && lines[0].contains(", 2 at a time: "), "{first:?}");
    let names = lines[1..8].iter().map(|line| line.split_whitespace().next().unwrap());
    assert_eq!(names.collect::<Vec<_>>(), ["min", "mean", "p50", "p90", "p99", "p99.9", "max"]);
    assert!(lines[8..].iter().all(|line| line.trim_start().starts_with("< ")), "{first:?}");
    assert!(lines[8..].iter().any(|line| line.contains('█')), "{first:?}");

    let second = bench(Some("demo"), &["-n", "10", "-c", "2", "--compare", file]);
    let changed = second.stdout.lines().take(8).filter(|line| line.ends_with(" %)")).count();
    assert_eq!(changed, 8, "{second:?}");
    let json = bench(Some("demo"), &["-n", "1", "--json", "--compare", file]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert!(json["runs"][0]["change"]["rate"].is_number(), "{json}");
    std::fs::remove_file(&path).unwrap();
}

/// A recording that knows the answers of three calls, and no more.
#[test]
fn failed_calls_are_counted_by_their_class() {
    let path = fresh_file("bench.jsonl");
    let program = env!("CARGO_BIN_EXE_pintle");
    let file = path.to_str().unwrap();
    let traced = typed(&[
        "trace",
        "demo",
        "-o",
        file,
        "--",
        "bench",
        "tide",
        "port=bergen",
        "hour=4",
        "-n",
        "2",
        "-c",
        "1",
    ]);
    assert_eq!(traced.code, Some(0), "{traced:?}");
    let measured = bench(None, &["-n", "5", "-c", "1", "--json", "--", program, "replay", file, "--strict"]);
    assert_eq!(measured.code, Some(2), "{measured:?}");
    let report: Value = serde_json::from_str(&measured.stdout).unwrap();
    let run = &report["runs"][0];
    assert_eq!((&run["calls"], &run["errors"]["server"]["count"]), (&2.into(), &3.into()), "{run}");
    let error: Value = serde_json::from_str(&measured.stderr).unwrap();
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("3 of 5 calls failed: the server returned an error"), "{message}");
    std::fs::remove_file(&path).unwrap();
}
