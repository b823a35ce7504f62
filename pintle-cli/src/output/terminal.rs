//! The size of the terminal.

/// The width of lines for a pipe, and where the width is not known.
const DEFAULT: usize = 100;
/// Narrower terminals are treated as this wide: their lines wrap.
const MIN: usize = 40;

/// Returns the width to print for: `COLUMNS`, the terminal's, or the default.
pub(super) fn width() -> usize {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    columns
        .or_else(|| of_terminal().map(|(width, _)| width))
        .filter(|width| *width > 0)
        .map_or(DEFAULT, |width| width.max(MIN))
}

/// Returns the number of lines of the terminal. `None` if it is not known, or cannot be moved back to.
pub(super) fn height() -> Option<usize> {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    of_terminal().map(|(_, height)| height).filter(|height| *height > 0 && !is_dumb)
}

/// Returns the number of columns of the terminal.
pub(super) fn columns() -> Option<usize> {
    of_terminal().map(|(width, _)| width).filter(|width| *width > 0)
}

/// The width of a terminal.
#[derive(Clone, Copy, Debug)]
pub(super) struct PixelSize {
    /// The width in pixels.
    pub(super) width: u32,
    pub(super) columns: u16,
}

/// Returns the width of the terminal in pixels. `None` if it does not know.
#[cfg(unix)]
pub(super) fn size_in_pixels() -> Option<PixelSize> {
    #[expect(clippy::disallowed_methods, reason = "nothing is printed")]
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    (size.ws_xpixel > 0 && size.ws_col > 0)
        .then(|| PixelSize { width: size.ws_xpixel.into(), columns: size.ws_col })
}

#[cfg(not(unix))]
pub(super) fn size_in_pixels() -> Option<PixelSize> {
    None
}

/// Returns the width and the height.
#[cfg(unix)]
fn of_terminal() -> Option<(usize, usize)> {
    #[expect(clippy::disallowed_methods, reason = "nothing is printed")]
    let (out, err) = (std::io::stdout(), std::io::stderr());
    let size = rustix::termios::tcgetwinsize(out).or_else(|_| rustix::termios::tcgetwinsize(err)).ok()?;
    Some((size.ws_col.into(), size.ws_row.into()))
}

#[cfg(not(unix))]
fn of_terminal() -> Option<(usize, usize)> {
    None
}
