use std::{
    collections::VecDeque,
    fmt,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{io::AsyncReadExt, process::ChildStderr};

use super::counted::Counted;

/// Where the standard error of a [`Child`](super::Child) goes: servers log there.
#[non_exhaustive]
#[derive(Clone)]
pub enum Stderr {
    /// To this process's own.
    Inherit,
    /// Nowhere.
    Null,
    /// To a function, line by line. Made by [`Stderr::lines`].
    Lines(Arc<dyn Fn(&str) + Send + Sync>),
}

/// How much of a line is kept.
const LINE: usize = 8 << 10;

impl Stderr {
    /// To a function, line by line. Lines of more than 8 KiB are cut; what is no UTF-8 is replaced.
    ///
    /// The function must not block: it is called on the runtime. One that panics is called again with the next line.
    pub fn lines(callback: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self::Lines(Arc::new(callback))
    }

    /// The reading of the lines, if there are any to read.
    pub(super) fn listen(
        &self,
        pipe: Option<Counted<ChildStderr>>,
        last_words: &LastWords,
    ) -> Option<impl Future<Output = ()> + Send + use<>> {
        let (Self::Lines(callback), Some(mut pipe)) = (self, pipe) else { return None };
        let (callback, last_words) = (callback.clone(), last_words.clone());
        let mut lines = Lines::new(move |line| {
            last_words.add(line);
            // The panic has been reported by its hook; the pipe must be read on, or the child would get stuck.
            let _ = catch_unwind(AssertUnwindSafe(|| callback(line)));
        });
        Some(async move {
            let mut chunk = vec![0; LINE];
            while let Ok(length @ 1..) = pipe.read(&mut chunk).await {
                lines.take(&chunk[..length]);
                // The short lines of one that writes without an end take long: other tasks have their turn, and timers.
                tokio::task::yield_now().await;
            }
            lines.end();
        })
    }
}

/// The last non-empty lines of standard error.
#[derive(Clone, Debug, Default)]
pub(super) struct LastWords(Arc<Mutex<VecDeque<String>>>);

/// How many lines are searched for the error message, which a stack trace may follow.
const LOOKED_AT: usize = 20;
/// How many lines are quoted.
const SHOWN: usize = 3;
/// Limit of each quoted line, in characters.
const CHARACTERS: usize = 200;

impl LastWords {
    /// Returns the lines to quote, in backticks: first the error message, then the last lines.
    pub(super) fn get(&self) -> Option<String> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last_with =
            |words: &[&str]| lines.iter().rposition(|line| words.iter().any(|word| line.contains(word)));
        let error = last_with(&["Error:", "error:", "Exception:", "panicked at"])
            .or_else(|| last_with(&["Error", "error"]));
        let others = (0..lines.len()).filter(|at| Some(*at) != error);
        let room = SHOWN - usize::from(error.is_some());
        let others = others.clone().skip(others.count().saturating_sub(room));
        let shown: Vec<String> = error
            .into_iter()
            .chain(others)
            .filter_map(|at| lines.get(at))
            .map(|line| format!("`{line}`"))
            .collect();
        (!shown.is_empty()).then(|| shown.join(", "))
    }

    fn add(&self, line: &str) {
        let end = line.char_indices().nth(CHARACTERS).map_or(line.len(), |(index, _)| index);
        let line = line[..end].trim();
        if line.is_empty() {
            return;
        }
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == LOOKED_AT {
            lines.pop_front();
        }
        lines.push_back(line.to_owned());
    }
}

/// Cuts bytes into lines.
pub(super) struct Lines<F> {
    line: Vec<u8>,
    cut: bool,
    emit: F,
}

impl<F: FnMut(&str)> Lines<F> {
    pub(super) fn new(emit: F) -> Self {
        Self { line: Vec::new(), cut: false, emit }
    }

    pub(super) fn take(&mut self, mut bytes: &[u8]) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            self.extend(&bytes[..end]);
            self.emit();
            bytes = &bytes[end + 1..];
        }
        self.extend(bytes);
    }

    /// A last line without its end is a line all the same.
    pub(super) fn end(&mut self) {
        if !self.line.is_empty() {
            self.emit();
        }
    }

    fn extend(&mut self, bytes: &[u8]) {
        let room = LINE - self.line.len();
        self.cut |= bytes.len() > room;
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn emit(&mut self) {
        let text = String::from_utf8_lossy(&self.line);
        let text = text.strip_suffix('\r').unwrap_or(&text);
        if self.cut {
            (self.emit)(&format!("{text}…"))
        } else {
            (self.emit)(text)
        }
        self.line.clear();
        self.cut = false;
    }
}

impl fmt::Debug for Stderr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Inherit => "Inherit",
            Self::Null => "Null",
            Self::Lines(_) => "Lines(..)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_says_what_went_wrong_comes_first() {
        let words = |text: &str| {
            let words = LastWords::default();
            text.lines().for_each(|line| words.add(line));
            words.get()
        };
        let node = "node:internal/modules/cjs/loader:1228\n  throw err;\n  ^\n\nError: Cannot find module 'x'\n    at \
                    Module._load (node:internal)\n  code: 'MODULE_NOT_FOUND'\n}\n\nNode.js v22.1.0\n";
        assert_eq!(words(node).unwrap(), "`Error: Cannot find module 'x'`, `}`, `Node.js v22.1.0`");
        let python = "Traceback (most recent call last):\n  File \"s.py\", line 1, in <module>\n    import x\n\
                      ModuleNotFoundError: No module named 'x'\n";
        assert_eq!(
            words(python).unwrap(),
            "`ModuleNotFoundError: No module named 'x'`, `File \"s.py\", line 1, in <module>`, `import x`"
        );
        assert_eq!(words("one\ntwo\nthree\nfour\n").unwrap(), "`two`, `three`, `four`");
        assert_eq!(words("an error here\ngood bye").unwrap(), "`an error here`, `good bye`");
        assert_eq!(words("\n \n"), None);
        // One of long ago is not to blame, and nothing is kept for ever.
        let long = format!("error: old\n{}", format!("{}\n", "ü".repeat(500)).repeat(LOOKED_AT));
        let shown = words(&long).unwrap();
        assert!(!shown.contains("old") && shown.chars().count() == SHOWN * (CHARACTERS + 2) + 4, "{shown}");
    }

    #[test]
    fn lines_are_cut_out_however_they_come_and_long_ones_shortened() {
        let seen = Mutex::new(Vec::new());
        let mut lines = Lines::new(|line: &str| seen.lock().unwrap().push(line.to_owned()));
        lines.take(b"on");
        lines.take(b"e\r\n\ntwo\nthr");
        lines.take(b"ee");
        lines.take(&[b'e'; LINE]);
        lines.take(b"ee\nlast");
        lines.end();
        let mut seen = seen.into_inner().unwrap();
        let long = seen.remove(3);
        assert_eq!(seen, ["one", "", "two", "last"]);
        assert!(long.starts_with("three") && long.ends_with("e…") && long.len() == LINE + '…'.len_utf8());
    }
}
