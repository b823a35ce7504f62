//! What a shell offers for the word that is being typed.

use std::fs;

use crate::support::{HttpServing, pintle, run, state_directory, typed};

fn offered(cache: &str, words: &[&str]) -> Vec<String> {
    let mut command = pintle();
    command.env("PINTLE_CACHE_DIR", state_directory().join(cache)).arg("__complete").args(words);
    let printed = run(&mut command);
    assert_eq!((printed.code, printed.stderr.as_str()), (Some(0), ""), "{printed:?}");
    printed.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn verbs_options_and_their_values_are_offered() {
    assert_eq!(offered("none", &["ca"]), ["call"]);
    assert_eq!(offered("none", &["t"]), ["tap", "tour", "trace"]);
    assert_eq!(offered("none", &["re"]), ["read", "repl", "replay", "resume"]);
    assert_eq!(offered("none", &["b"]), ["bench", "bridge"]);
    for verb in ["trace", "bench"] {
        assert_eq!(offered("none", &[verb, "de"]), ["demo"]);
    }
    assert_eq!(offered("none", &["ls", "de"]), ["demo"]);
    assert_eq!(offered("none", &["ls", "demo", "--sch"]), ["--schema"]);
    assert_eq!(offered("none", &["ls", "--era", "s"]), ["session", "stateless"]);
    assert_eq!(offered("none", &["ls", "demo", "t"]), ["templates", "tools"]);
    assert_eq!(offered("none", &["completions", ""]), ["bash", "fish", "zsh"]);
    // After `--` there are files.
    assert!(offered("none", &["ls", "--", "py"]).is_empty());
    assert!(offered("none", &["call", "demo", ""]).is_empty());
}

#[test]
fn tools_arguments_and_values_come_from_the_cache() {
    let cache = state_directory().join("filled");
    let filled = |words: &[&str]| run(pintle().env("PINTLE_CACHE_DIR", &cache).args(words));
    // One call stores its tool, and a list all of them.
    assert_eq!(filled(&["call", "demo", "tide", "port=bergen", "hour=1"]).code, Some(0));
    assert_eq!(offered("filled", &["call", "demo", ""]), ["tide"]);
    assert_eq!(filled(&["ls", "demo", "--grep", "nothing"]).code, Some(0));
    assert_eq!(offered("filled", &["call", "demo", "s"]), ["sail", "season", "signal"]);
    assert_eq!(offered("filled", &["call", "demo", "tide", ""]), ["hour=", "port="]);
    assert_eq!(offered("filled", &["prompt", "demo", "pas"]), ["passage"]);
    assert_eq!(offered("filled", &["read", "demo", "harbour://n"]), ["harbour://notice"]);
    assert_eq!(offered("filled", &["call", "demo", "tide", "hour=3", ""]), ["port="]);
    assert_eq!(offered("filled", &["call", "demo", "tide", "port=b"]), ["port=bergen"]);
    assert_eq!(offered("filled", &["call", "demo", "tide", "--po"]), ["--port"]);
    #[cfg(unix)]
    for file in fs::read_dir(cache.join("catalogues")).unwrap() {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(file.unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    fs::remove_dir_all(&cache).unwrap();
}

#[test]
fn calls_that_wait_are_offered_by_their_tokens_until_they_are_resumed() {
    let demo = HttpServing::demo();
    let asked = typed(&["call", &demo.url, "berth", "--json"]);
    let token = serde_json::from_str::<serde_json::Value>(&asked.stdout).unwrap()["resume"].clone();
    let token = token.as_str().unwrap();
    assert_eq!(offered("none", &["resume", token.split_at(8).0]), [token]);
    // The words after it are answers.
    assert!(offered("none", &["resume", token, ""]).iter().all(|word| word != token));
    assert_eq!(typed(&["resume", token, "--decline"]).code, Some(0));
    assert!(offered("none", &["resume", token.split_at(8).0]).is_empty());
}

#[test]
#[cfg(target_os = "linux")]
fn names_of_a_hostile_server_are_not_offered() {
    let url = crate::support::hostile_server::start();
    let cache = state_directory().join("hostile");
    assert_eq!(run(pintle().env("PINTLE_CACHE_DIR", &cache).args(["ls", &url])).code, Some(0));
    let tools = offered("hostile", &["call", &url, ""]);
    assert!(tools.contains(&"plain".to_owned()) && tools.iter().all(|name| name.is_ascii()), "{tools:?}");
    assert_eq!(offered("hostile", &["call", &url, "plain", ""]), ["city="]);
    assert!(offered("hostile", &["call", &url, "plain", "city="]).is_empty());
    fs::remove_dir_all(&cache).unwrap();
}

#[test]
#[cfg(unix)]
fn the_script_of_bash_is_one() {
    let script = typed(&["completions", "bash"]).stdout;
    let checked = std::process::Command::new("bash").args(["-n", "-c", &script]).status();
    assert!(checked.is_ok_and(|status| status.success()), "{script}");
    for shell in ["zsh", "fish"] {
        assert!(typed(&["completions", shell]).stdout.contains("pintle __complete"));
    }
}
