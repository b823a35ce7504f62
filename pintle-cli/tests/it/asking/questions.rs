//! Questions of a server where nobody is asked: given answers, and calls that go on in another command.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::support::{HttpServing, Printed, pintle, run, state_directory, typed};

const PROGRAM: &str = env!("CARGO_BIN_EXE_pintle");

/// Runs a line with each target and in each era; `TARGET` stands for its words before, and the program is at the end.
fn everywhere(words: &[&str], check: impl Fn(&str, &str, Printed)) {
    let demo = HttpServing::demo();
    for era in ["stateless", "session"] {
        for (name, target, end) in
            [("demo", "demo", &[][..]), ("HTTP", &*demo.url, &[]), ("stdio", "", &["--", PROGRAM, "demo"])]
        {
            let words = words.iter().map(|word| if *word == "TARGET" { target } else { word });
            let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
            let words: Vec<_> = words.into_iter().chain(["--era", era]).chain(end.iter().copied()).collect();
            check(era, name, typed(&words));
        }
    }
}

#[test]
fn given_answers_are_sent_in_both_eras() {
    everywhere(
        &["call", "TARGET", "berth", "--answer", "boat=Tern", "--answer", "nights=3"],
        |era, name, printed| {
            let is_done = printed.code == Some(0) && printed.stdout.ends_with(" for the Tern, 3 nights.\n");
            assert!(is_done, "{era} {name}: {printed:?}");
        },
    );
    everywhere(&["call", "TARGET", "berth", "--decline"], |era, name, printed| {
        assert_eq!(
            (printed.code, printed.stdout.as_str()),
            (Some(0), "The berth stays free.\n"),
            "{era} {name}: {printed:?}"
        );
    });
}

#[test]
fn answers_come_from_a_file_and_from_standard_input() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("answers-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("answers.json");
    fs::write(&file, r#"{"boat": "Auk", "nights": 2}"#).unwrap();
    let printed = typed(&["call", "demo", "berth", "--answers", file.to_str().unwrap()]);
    assert_eq!(printed.stdout, "Berth 1 for the Auk, 2 nights.\n", "{printed:?}");
    let mut command = pintle();
    command.args(["call", "demo", "berth", "--answers", "-"]).stdin(fs::File::open(&file).unwrap());
    let output = command.output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "Berth 1 for the Auk, 2 nights.\n");
    fs::write(&file, "[]").unwrap();
    let refused = typed(&["call", "demo", "berth", "--answers", file.to_str().unwrap()]);
    assert!(refused.code == Some(1) && refused.stderr.contains("is not a JSON object"), "{refused:?}");
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn wrong_answers_name_what_was_asked_for() {
    everywhere(
        &["call", "TARGET", "berth", "--answer", "boat=Tern", "--answer", "nigths=3"],
        |era, name, printed| {
            assert_eq!((printed.code, printed.stdout.as_str()), (Some(1), ""), "{era} {name}: {printed:?}");
            let message =
                "the server does not ask for `nigths`; did you mean `nights`? it asks for `boat`, `nights`";
            assert!(printed.stderr.contains(message), "{era} {name}: {printed:?}");
        },
    );
    let short = typed(&["call", "demo", "berth", "--answer", "boat=Tern"]);
    assert!(short.code == Some(1) && short.stderr.contains("the server asks for `nights` too"), "{short:?}");
    let wide = typed(&["call", "demo", "berth", "--answer", "boat=Tern", "--answer", "nights=40"]);
    assert!(wide.stderr.contains("`nights` must be an integer from 1 to 14, not `40`"), "{wide:?}");
    let more = typed(&["call", "demo", "tide", "port=bergen", "hour=4", "--answer", "boat=Tern"]);
    assert_eq!((more.code, more.stdout.is_empty()), (Some(1), false), "{more:?}");
    assert!(more.stderr.contains("did not ask for `boat`: it asked for nothing"), "{more:?}");
}

#[test]
fn without_a_terminal_the_question_is_printed() {
    everywhere(&["call", "TARGET", "berth", "--json"], |era, name, printed| {
        assert_eq!(printed.code, Some(7), "{era} {name}: {printed:?}");
        let question: Value = serde_json::from_str(&printed.stdout).unwrap();
        let (_, request) = question["inputRequests"].as_object().unwrap().iter().next().unwrap();
        assert_eq!(request["params"]["message"], "Who comes, and for how long?");
        assert!(request["params"]["requestedSchema"]["properties"]["nights"].is_object(), "{question}");
        // The state of the server is not for others.
        assert_eq!(
            (&question["resultType"], &question["requestState"]),
            (&json!("input_required"), &Value::Null)
        );
        assert_eq!(question["resume"].is_string(), era == "stateless", "{question}");
        let error: Value = serde_json::from_str(&printed.stderr).unwrap();
        assert_eq!(error["error"]["kind"], "needs-input");
        let next = error["error"]["next"].as_str().unwrap();
        assert!(
            next.contains(if era == "stateless" {
                "pintle resume "
            } else {
                "--answer boat=… --answer nights=1"
            }),
            "{next}"
        );
    });
    everywhere(&["call", "TARGET", "berth"], |era, name, printed| {
        assert_eq!((printed.code, printed.stdout.as_str()), (Some(7), ""), "{era} {name}");
        let lines = "harbour asks: Who comes, and for how long?\n  boat: a text, required (The name of the boat.)\n  \
                     nights: an integer from 1 to 14, required (How many nights.)\n";
        assert!(printed.stderr.contains(lines), "{era} {name}: {}", printed.stderr);
        assert_eq!(printed.stderr.contains("with a session the call cannot be resumed"), era == "session");
    });
}

/// Makes a call that asks, and returns its token.
fn suspend(words: &[&str]) -> String {
    let asked = typed(&[words, &["--json"]].concat());
    assert_eq!(asked.code, Some(7), "{asked:?}");
    serde_json::from_str::<Value>(&asked.stdout).unwrap()["resume"].as_str().unwrap().to_owned()
}

#[test]
fn a_call_goes_on_in_another_command() {
    let demo = HttpServing::demo();
    for target in ["demo", &demo.url] {
        let token = suspend(&["call", target, "berth"]);
        // Only its owner can read it, and it has no URL of secrets.
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let file = state_directory().join(format!("calls/{token}.json"));
            assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
        }
        // What is wrong or missing leaves it as it is.
        let wrong = typed(&["resume", &token, "boat=Tern", "nights=40"]);
        assert!(wrong.code == Some(1) && wrong.stderr.contains("from 1 to 14"), "{wrong:?}");
        let asked = typed(&["resume", &token]);
        assert_eq!(asked.code, Some(7), "{asked:?}");
        assert!(
            asked.stderr.contains(&format!("  try: pintle resume {token} boat=… nights=1\n")),
            "{asked:?}"
        );
        let unasked = typed(&["resume", &token, "boat=Tern", "nights=3", "captain=Ada"]);
        assert!(
            unasked.code == Some(1) && unasked.stderr.contains("did not ask for `captain`"),
            "{unasked:?}"
        );
        let done = typed(&["resume", &token, "boat=Tern", "nights=3"]);
        assert_eq!(
            (done.code, done.stdout.as_str()),
            (Some(0), "Berth 1 for the Tern, 3 nights.\n"),
            "{done:?}"
        );
        let again = typed(&["resume", &token, "boat=Tern", "nights=3"]);
        assert!(again.code == Some(1) && again.stderr.contains("it was resumed"), "{again:?}");
    }
    let token = suspend(&["call", "demo", "berth"]);
    assert_eq!(typed(&["resume", &token, "--decline"]).stdout, "The berth stays free.\n");
}

#[test]
fn a_program_is_given_again_and_its_command_line_is_not_stored() {
    let asked = typed(&["call", "berth", "--json", "--", PROGRAM, "demo"]);
    let token = serde_json::from_str::<Value>(&asked.stdout).unwrap()["resume"].as_str().unwrap().to_owned();
    let stored = fs::read_to_string(state_directory().join(format!("calls/{token}.json"))).unwrap();
    assert!(!stored.contains(PROGRAM), "{stored}");
    let missing = typed(&["resume", &token, "boat=Tern", "nights=3"]);
    assert!(
        missing.code == Some(1) && missing.stderr.contains("is not stored: give it again"),
        "{missing:?}"
    );
    let done = typed(&["resume", &token, "boat=Tern", "nights=3", "--", PROGRAM, "demo"]);
    assert_eq!(done.stdout, "Berth 1 for the Tern, 3 nights.\n", "{done:?}");
}

#[test]
fn a_program_with_another_key_is_explained_and_the_token_is_kept() {
    let asked = typed(&["call", "berth", "--json", "--", PROGRAM, "demo", "--own-key"]);
    let token = serde_json::from_str::<Value>(&asked.stdout).unwrap()["resume"].as_str().unwrap().to_owned();
    for _ in 0..2 {
        let refused = typed(&["resume", &token, "boat=Tern", "nights=3", "--", PROGRAM, "demo", "--own-key"]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains("only if it keeps its state key"), "{refused:?}");
    }
}

#[test]
fn sampling_and_roots_are_declared_only_if_they_are_given() {
    let folder = std::env::temp_dir();
    let folder = folder.to_str().unwrap();
    let undeclared = typed(&["call", "demo", "customs", "--decline"]);
    assert_ne!(undeclared.code, Some(0), "{undeclared:?}");
    everywhere(
        &[
            "call",
            "TARGET",
            "customs",
            "--decline",
            "--root",
            folder,
            "--sample-with",
            "cat > /dev/null; echo salt",
        ],
        |era, name, printed| {
            assert_eq!(
                printed.stdout, "Goods: salt Places: 1. Duty: not paid.\n",
                "{era} {name}: {printed:?}"
            );
        },
    );
    // A page is accepted by the one who has seen its URL.
    let words = ["call", "demo", "customs", "--root", folder, "--sample-with", "cat > /dev/null; echo salt"];
    let asked = run(pintle().args(words));
    assert_eq!(asked.code, Some(7), "{asked:?}");
    assert!(asked.stderr.contains("page: https://example.com/duty/7"), "{asked:?}");
    let token = suspend(&words);
    let done = typed(&[
        "resume",
        &token,
        "--accept",
        "--root",
        folder,
        "--sample-with",
        "cat > /dev/null; echo salt",
    ]);
    assert_eq!(done.stdout, "Goods: salt Places: 1. Duty: the page is open.\n", "{done:?}");
    let failing =
        typed(&["call", "demo", "customs", "--decline", "--root", folder, "--sample-with", "exit 3"]);
    assert!(failing.code == Some(1) && failing.stderr.contains("failed with exit status: 3"), "{failing:?}");
}

#[test]
fn a_call_that_needs_a_model_or_roots_ends_with_the_option_to_type() {
    let next = |printed: &Printed| printed.stderr.lines().last().unwrap_or_default().to_owned();
    everywhere(&["call", "TARGET", "customs", "--decline"], |era, name, printed| {
        let line = next(&printed);
        let has_option =
            line.starts_with("  try: pintle call ") && line.contains(" customs --sample-with COMMAND");
        assert!(printed.code == Some(2) && has_option, "{era} {name}: {printed:?}");
    });
    everywhere(
        &["call", "TARGET", "customs", "--decline", "--sample-with", "echo cod"],
        |era, name, printed| {
            let line = next(&printed);
            let has_option = line.starts_with("  try: pintle call ") && line.contains(" customs --root DIR");
            assert!(printed.code == Some(2) && has_option, "{era} {name}: {printed:?}");
        },
    );
    everywhere(
        &["call", "TARGET", "customs", "--decline", "--sample-with", "echo cod", "--root", "."],
        |era, name, printed| assert_eq!(printed.code, Some(0), "{era} {name}: {printed:?}"),
    );
}

#[test]
fn a_call_that_is_resumed_without_a_model_ends_with_the_option_to_type() {
    let demo = HttpServing::demo();
    let asked = typed(&["call", &demo.url, "customs", "--no-input"]);
    let token = asked.stderr.split("pintle resume ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    let printed = typed(&["resume", &token, "--accept"]);
    let expected = format!("  try: pintle call {} customs --sample-with COMMAND\n", demo.url);
    assert!(printed.code == Some(2) && printed.stderr.ends_with(&expected), "{printed:?}");
}

#[test]
fn in_a_repl_the_option_is_one_of_the_connection() {
    let script = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("repl-{}", std::process::id()));
    fs::write(&script, "call customs --decline\n").unwrap();
    let output = pintle().args(["repl", "demo"]).stdin(fs::File::open(&script).unwrap()).output().unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(printed.contains("  try: pintle repl demo --sample-with COMMAND\n"), "{printed}");
    fs::remove_file(&script).unwrap();
}
