//! What happened when, for those who look for the cause of a violation.

use std::{
    fmt,
    time::{SystemTime, UNIX_EPOCH},
};

/// Lines with the time of day, as the logs of the processes have it.
#[derive(Clone, Debug, Default)]
pub(super) struct Trace(Vec<(String, String)>);

impl Trace {
    pub(super) fn add(&mut self, what: impl fmt::Display) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (seconds, millis) = (now.as_secs() % 86_400, now.subsec_millis());
        let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        self.0.push((format!("{hours:02}:{minutes:02}:{seconds:02}.{millis:03}"), what.to_string()));
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds the lines of a log from the time of the first line to that of the last one, each with the name of its process.
    pub(super) fn add_log(&mut self, name: &str, log: &str) {
        let times = || self.0.iter().map(|(time, _)| time.clone());
        let (Some(first), Some(last)) = (times().min(), times().max()) else { return };
        let (mut time, mut before) = (String::new(), "");
        for line in log.lines() {
            // Such as 2026-07-28T10:11:12.123456Z. The lines of a panic have no time.
            if let Some(found) = line.get(11..23).filter(|_| line.as_bytes()[10] == b'T') {
                found.clone_into(&mut time);
            }
            let text = line.get(27..).filter(|_| line.as_bytes()[10] == b'T').unwrap_or(line);
            // Requests that fail for one reason are many.
            if (&*first..=&*last).contains(&&*time) && text != before {
                self.0.push((time.clone(), format!("[{name}] {text}")));
                before = text;
            }
        }
    }

    /// Adds the last lines of another trace up to the time of the last one.
    pub(super) fn add_last(&mut self, count: usize, other: &Self) {
        let last = self.0.iter().map(|(time, _)| time.clone()).max().unwrap_or_default();
        let earlier: Vec<_> = other.0.iter().filter(|(time, _)| *time <= last).cloned().collect();
        self.0.extend_from_slice(&earlier[earlier.len().saturating_sub(count)..]);
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = self.0.clone();
        lines.sort_by(|one, other| one.0.cmp(&other.0));
        lines.iter().try_for_each(|(time, what)| writeln!(f, "    {time} {what}"))
    }
}
