//! The tour, word by word. `PINTLE_BLESS=1 cargo test -p pintle-cli` writes it anew.

use pintle_cli::tour::{Length, Paint, VERBS, run};

use crate::support::{pintle, snapshot::assert_file, typed, words};

async fn shown(length: Length) -> String {
    let mut out = Vec::new();
    run(&mut out, Paint::PLAIN, length).await.unwrap();
    String::from_utf8(out).unwrap()
}

#[tokio::test]
async fn it_shows_the_same_every_time() {
    for (length, file) in [(Length::Short, "tour.txt"), (Length::All, "tour_all.txt")] {
        let once = shown(length).await;
        assert_eq!(once, shown(length).await);
        assert_file(&once, file);
    }
}

#[tokio::test]
async fn a_chapter_of_the_short_one_is_a_few_screens() {
    let (short, all) = (shown(Length::Short).await, shown(Length::All).await);
    assert!(short.lines().count() * 3 < all.lines().count() * 2, "{short}");
    let is_title = |line: &str| line.starts_with(|letter: char| letter.is_ascii_digit());
    let mut length = 0;
    for line in short.lines() {
        length = if is_title(line) { 0 } else { length + 1 };
        assert!(length < 56, "a chapter is too long: {line}");
    }
}

#[test]
fn it_ends_with_verbs_that_work() {
    for (line, _) in VERBS {
        let words = words(line.strip_prefix("pintle ").unwrap());
        let done = typed(&words);
        assert_eq!(done.code, Some(0), "{line}: {done:?}");
    }
}

#[test]
fn it_runs_in_a_pipe_without_colours() {
    let tour = pintle().output().unwrap();
    assert!(tour.status.success() && tour.stderr.is_empty(), "{tour:?}");
    let shown = String::from_utf8(tour.stdout).unwrap();
    assert!(!shown.contains('\u{1b}'));
    assert!(shown.starts_with("Pintle: ") && shown.contains("pintle tour --all"), "{shown}");
    let wide = shown.lines().find(|line| line.chars().count() > 100);
    assert_eq!(wide, None, "it fits on a screen");
    let all = typed(&["tour", "--all"]).stdout;
    assert!(all.contains("Pages, sampling and roots") && !shown.contains("Pages, sampling and roots"));
}
