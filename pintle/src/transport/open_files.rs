//! The limit of open files, which every connection and every pipe counts towards.
#![cfg_attr(
    not(all(feature = "http-client", feature = "http-server")),
    allow(dead_code, reason = "some of it is used by servers only, and some by clients")
)]

use std::io;

/// The advice for when the limit is reached.
const ADVICE: &str = "raise the limit of open files (`ulimit -n`) and start the program again, or use fewer connections at a time";

/// Returns whether this process, or the whole system, has as many open files as it may have.
pub(crate) fn are_exhausted(error: &io::Error) -> bool {
    // `EMFILE` and `ENFILE`, which no `ErrorKind` stands for. They have the same numbers on all Unix systems.
    const CODES: &[i32] = if cfg!(windows) { &[4, 10_024] } else { &[24, 23] };
    error.raw_os_error().is_some_and(|code| CODES.contains(&code))
}

/// Returns the error with what to do about it, if too many files are open. Its kind is then [`io::ErrorKind::ResourceBusy`].
pub(crate) fn explained(error: io::Error) -> io::Error {
    match are_exhausted(&error) {
        true => io::Error::new(io::ErrorKind::ResourceBusy, explanation(&error)),
        false => error,
    }
}

/// Returns the message of an error because of too many open files.
pub(crate) fn explanation(error: &io::Error) -> String {
    format!("this program has too many open files: {error}; {ADVICE}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn too_many_files_are_distinguished_from_other_errors() {
        for code in [23, 24] {
            let error = explained(io::Error::from_raw_os_error(code));
            assert_eq!(error.kind(), io::ErrorKind::ResourceBusy);
            assert!(error.to_string().contains("`ulimit -n`"), "{error}");
        }
        assert_eq!(explained(io::Error::from_raw_os_error(111)).kind(), io::ErrorKind::ConnectionRefused);
    }
}
