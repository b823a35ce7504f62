//! The width of the terminal.

/// The width of lines for a pipe, and where the width is not known.
const DEFAULT: usize = 100;
/// Narrower terminals are treated as this wide: their lines wrap.
const MIN: usize = 40;

/// Returns the width to print for: `COLUMNS`, the terminal's, or the default.
pub(super) fn width() -> usize {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    columns.or_else(of_terminal).filter(|width| *width > 0).map_or(DEFAULT, |width| width.max(MIN))
}

#[cfg(unix)]
fn of_terminal() -> Option<usize> {
    #[expect(clippy::disallowed_methods, reason = "nothing is printed")]
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(size.ws_col.into())
}

#[cfg(not(unix))]
fn of_terminal() -> Option<usize> {
    None
}
