//! Images at terminals that show them.

use crate::support::{pintle, pty::run_in_terminal};

/// Calls the tool with an image, at a terminal with these variables.
fn shown(words: &[&str], variables: &[(&str, &str)]) -> String {
    let mut command = pintle();
    command.args(words).args(["call", "demo", "signal"]).envs(variables.iter().copied()).env("NO_COLOR", "1");
    let (code, shown) = run_in_terminal(&mut command, 80);
    assert_eq!(code, Some(0), "{shown}");
    shown
}

#[test]
fn a_terminal_that_shows_images_gets_them() {
    let kitty = shown(&[], &[("TERM", "xterm-kitty")]);
    assert!(kitty.contains("image: image/png, 105 bytes"), "{kitty:?}");
    assert!(kitty.contains("\x1b_Ga=T,f=100,q=2,m=0;iVBORw0KGgo"), "{kitty:?}");
    assert!(kitty.contains("audio: audio/wav"), "{kitty:?}");

    let iterm = shown(&[], &[("TERM_PROGRAM", "iTerm.app")]);
    assert!(iterm.contains("\x1b]1337;File=inline=1;size=105:iVBORw0KGgo"), "{iterm:?}");
}

#[test]
fn others_and_programs_get_none() {
    for (words, variables) in [
        (&[][..], &[("TERM", "xterm-256color")][..]),
        (&[], &[("TERM", "xterm-kitty"), ("TMUX", "/tmp/tmux-0/default,1,0")]),
        (&["--json"], &[("TERM", "xterm-kitty")]),
    ] {
        let shown = shown(words, variables);
        assert!(!shown.contains('\x1b'), "{variables:?} {shown:?}");
    }
    let piped = pintle().args(["call", "demo", "signal"]).env("TERM", "xterm-kitty").output().unwrap();
    assert!(!piped.stdout.contains(&b'\x1b'));
}
