//! The bounds that `docs/running.md` lists are those that hold.

use std::time::Duration;

use pintle::{Timeouts, proto::Limits};

const PAGE: &str = include_str!("../../../../docs/running.md");

fn bytes(count: usize) -> String {
    if count >= 1 << 20 { format!("{} MiB", count >> 20) } else { format!("{} KiB", count >> 10) }
}

fn count(number: usize) -> String {
    if number < 1000 { number.to_string() } else { format!("{},{:03}", number / 1000, number % 1000) }
}

fn time(duration: Duration) -> String {
    match duration.as_secs() {
        3600 => "one hour".to_owned(),
        seconds if seconds >= 60 => format!("{} min", seconds / 60),
        seconds => format!("{seconds} s"),
    }
}

#[test]
fn the_defaults_are_those_of_the_page() {
    let (limits, timeouts) = (Limits::default(), Timeouts::default());
    let rows = [
        ("message_bytes", bytes(limits.message_bytes)),
        ("batch", count(limits.batch)),
        ("in_flight", count(limits.in_flight)),
        ("subscriptions", count(limits.subscriptions)),
        ("watched", count(limits.watched)),
        ("session_bytes", bytes(limits.session_bytes)),
        ("sessions_bytes", bytes(limits.sessions_bytes)),
        ("held_bytes", bytes(limits.held_bytes)),
        ("rounds", limits.rounds.to_string()),
        ("questions", count(limits.questions)),
        ("state_bytes", bytes(limits.state_bytes)),
        ("state_ttl_ms", time(Duration::from_millis(limits.state_ttl_ms))),
        ("call", time(timeouts.call)),
        ("call_max", time(timeouts.call_max)),
        ("progress_extends", if timeouts.progress_extends { "yes" } else { "no" }.to_owned()),
        ("probe", time(timeouts.probe)),
        ("initialize", time(timeouts.initialize)),
        ("shutdown", time(timeouts.shutdown)),
        ("disconnect", time(timeouts.disconnect)),
        ("keepalive", timeouts.keepalive.map_or("off".to_owned(), time)),
        ("idle_session", time(timeouts.idle_session)),
        ("uninitialized_session", time(timeouts.uninitialized_session)),
    ];
    for (field, default) in rows {
        let row = PAGE.lines().find(|line| line.starts_with(&format!("| `{field}` |")));
        let row = row.unwrap_or_else(|| panic!("the page has no row for `{field}`"));
        assert!(row.ends_with(&format!("| {default} |")), "`{field}` is {default}: {row}");
    }
}
