//! Long results at a terminal.

use crate::support::{pintle, pty::converse, typed};

/// Returns what a terminal shows, and whether it went through the pager.
fn shown(pager: &str, words: &[&str]) -> (String, bool) {
    let mut command = pintle();
    command.args(words).env("NO_COLOR", "1").env("PAGER", pager);
    let (code, shown) = converse(&command, 80, &[]);
    assert_eq!(code, Some(0), "{shown}");
    let is_paged = shown.contains("paged:");
    (shown.replace("paged:", ""), is_paged)
}

#[test]
fn long_results_are_shown_in_the_pager() {
    let pager = "sed s/^/paged:/";
    let (plain, is_paged) = shown("cat", &["ls", "demo"]);
    assert!(!is_paged && plain.lines().count() > 24, "{plain}");
    assert_eq!(shown(pager, &["ls", "demo"]), (plain.clone(), true));
    // A program that does not exist is none.
    assert_eq!(shown("/no/such/program", &["ls", "demo"]), (plain.clone(), false));
    assert_eq!(shown("", &["ls", "demo"]), (plain.clone(), false));
    assert_eq!(shown(pager, &["ls", "demo", "--no-pager"]), (plain, false));
    // Help is a text too; short results and JSON are not for a pager.
    assert!(shown(pager, &["call", "--help"]).1);
    for words in [&["ls", "demo", "--json"][..], &["ls", "demo", "prompts"], &["ls", "demo", "--raw"]] {
        assert!(!shown(pager, words).1, "{words:?}");
    }
}

#[test]
fn a_pipe_has_no_pager() {
    assert!(!typed(&["ls", "demo"]).stdout.contains("paged:"));
    let mut command = pintle();
    let piped = crate::support::run(command.args(["ls", "demo"]).env("PAGER", "sed s/^/paged:/"));
    assert!(piped.code == Some(0) && !piped.stdout.contains("paged:"), "{piped:?}");
}
