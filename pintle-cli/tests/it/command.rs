//! The command as a person types it.

use std::process::Stdio;

use crate::support::{pintle, run, typed};

#[test]
fn help_has_many_names() {
    let help = typed(&["help"]);
    assert_eq!((help.code, help.stderr.as_str()), (Some(0), ""));
    assert_eq!(typed(&["--help"]), help);
    assert_eq!(typed(&["help", "ls"]), typed(&["ls", "-h"]));
    assert_eq!(typed(&["version"]).stdout, typed(&["-V"]).stdout);
}

#[test]
fn with_json_an_error_is_one_object_on_standard_error() {
    for words in [&["call", "demo", "tdie", "--json"][..], &["dmeo", "--json"], &["ls", "--json", "--bogus"]]
    {
        let failed = typed(words);
        assert_eq!((failed.code, failed.stdout.as_str()), (Some(1), ""));
        let error: serde_json::Value = serde_json::from_str(&failed.stderr).unwrap();
        assert_eq!(
            (&error["error"]["kind"], &error["error"]["exit"]),
            (&"usage".into(), &1.into()),
            "{error}"
        );
        assert!(error["error"]["next"].as_str().unwrap().starts_with("pintle "), "{error}");
    }
}

#[test]
fn arguments_come_from_files_and_standard_input() {
    let folder = std::env::temp_dir().join(format!("pintle-cli-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("arguments.json");
    std::fs::write(&file, r#"{"port": "lerwick", "hour": 3}"#).unwrap();
    let from_stdin =
        pintle().args(["call", "demo", "tide", "-"]).stdin(std::fs::File::open(&file).unwrap()).output();
    assert_eq!(String::from_utf8(from_stdin.unwrap().stdout).unwrap(), "{\"metres\":1.05,\"rising\":true}\n");
    std::fs::write(&file, "3").unwrap();
    let word = format!("hour@{}", file.display());
    assert_eq!(
        typed(&["call", "demo", "tide", "port=lerwick", &word]).stdout,
        "{\"metres\":1.05,\"rising\":true}\n"
    );

    let saved = folder.join("saved");
    let words = ["call", "demo", "signal", "--save", saved.to_str().unwrap()];
    assert_eq!(typed(&words).code, Some(0));
    assert!(std::fs::read(saved.join("image-2.png")).unwrap().starts_with(b"\x89PNG"));
    assert!(std::fs::read(saved.join("audio-3.wav")).unwrap().starts_with(b"RIFF"));
    // Nothing is overwritten.
    assert_eq!(typed(&words).code, Some(1));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn verbose_output_goes_to_standard_error() {
    let program = env!("CARGO_BIN_EXE_pintle");
    let sailed = typed(&["call", "-v", "sail", "to=bergen", "--", program, "demo"]);
    assert_eq!(sailed.stdout, "Arrived at Bergen.\n");
    for line in [
        "target: the program ",
        "revision: 2026-07-28",
        "bridge: {\"sails\":\"set\",\"to\":\"bergen\"}",
        "2/3 on the open sea",
    ] {
        assert!(sailed.stderr.contains(line), "{}", sailed.stderr);
    }
    assert_eq!(
        run(pintle().args(["ls", "demo"]).env("CLICOLOR_FORCE", "1")).stdout.matches("\u{1b}[1;36m").count(),
        4
    );
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let mut tour = pintle().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(tour.stdout.take());
    let ended = tour.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), ended.stderr.as_slice()), (Some(0), b"".as_slice()));
}
