//! The tour, word by word. `PINTLE_BLESS=1 cargo test -p pintle-cli` writes it anew.

use pintle_cli::tour::{Paint, run};

use crate::support::{pintle, snapshot::same};

#[tokio::test]
async fn it_says_the_same_every_time() {
    let (mut once, mut again) = (Vec::new(), Vec::new());
    run(&mut once, Paint::PLAIN).await.unwrap();
    run(&mut again, Paint::PLAIN).await.unwrap();
    let (once, again) = (String::from_utf8(once).unwrap(), String::from_utf8(again).unwrap());
    same(&again, &once, "tour.txt");
    if std::env::var_os("PINTLE_BLESS").is_some() {
        std::fs::write("tests/it/tour.txt", &once).unwrap();
    }
    same(&once, &std::fs::read_to_string("tests/it/tour.txt").unwrap(), "tour.txt");
}

#[test]
fn it_runs_in_a_pipe_without_colours() {
    let tour = pintle().output().unwrap();
    assert!(tour.status.success() && tour.stderr.is_empty(), "{tour:?}");
    let told = String::from_utf8(tour.stdout).unwrap();
    assert!(!told.contains('\u{1b}'));
    assert!(told.starts_with("Pintle: ") && told.contains("cargo run -- demo"), "{told}");
    let wide = told.lines().find(|line| line.chars().count() > 100);
    assert_eq!(wide, None, "it fits on a screen");
}
