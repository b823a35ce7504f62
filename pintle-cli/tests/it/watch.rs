//! `pintle watch` on a server that changes.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::Stdio,
};

use crate::support::{HttpServing, pintle, typed};

/// Watches the notice and the lists until `count` events were printed, while others change them.
fn watch(demo: &HttpServing, options: &[&str], changes: &[&[&str]]) -> String {
    let count = changes.len().to_string();
    let mut process = pintle()
        .args(["watch", &demo.url, "harbour://notice", "--count", &count])
        .args(options)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(process.stderr.take().unwrap()).lines();
    // It is subscribed when it says so.
    let watching = stderr.find(|line| line.as_ref().is_ok_and(|line| line.starts_with("watching")));
    assert!(watching.is_some());
    for change in changes {
        let words: Vec<_> = ["call", &demo.url].into_iter().chain(change.iter().copied()).collect();
        assert_eq!(typed(&words).code, Some(0));
    }
    let mut printed = String::new();
    process.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
    assert!(process.wait().unwrap().success(), "{printed}");
    printed
}

#[test]
fn changes_are_lines_in_both_eras() {
    let demo = HttpServing::demo();
    for era in ["stateless", "session"] {
        let printed = watch(&demo, &["--era", era], &[&["post", "text=gale"], &["season"]]);
        assert_eq!(printed, "updated harbour://notice\ntools changed\n", "{era}");
    }
}

#[test]
fn in_json_they_are_the_notifications_of_the_protocol() {
    let demo = HttpServing::demo();
    let printed = watch(&demo, &["--json", "-v"], &[&["post", "text=gale"], &["season"]]);
    assert_eq!(
        printed,
        "{\"method\":\"notifications/resources/updated\",\"params\":{\"uri\":\"harbour://notice\"}}\n\
         {\"method\":\"notifications/tools/list_changed\"}\n"
    );
}

#[test]
fn silence_ends_it_with_the_line_to_type_again() {
    let demo = HttpServing::demo();
    let printed = typed(&["watch", &demo.url, "harbour://notice", "--count", "1", "--timeout", "200ms"]);
    assert_eq!((printed.code, printed.stdout.as_str()), (Some(8), ""), "{printed:?}");
    let expected = format!(
        "pintle: no event was received within 200ms\n  try: pintle watch {} harbour://notice --count 1 --timeout 60s\n",
        demo.url
    );
    assert!(printed.stderr.ends_with(&expected), "{}", printed.stderr);
}
