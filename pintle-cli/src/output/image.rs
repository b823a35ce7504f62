//! Images in terminals that can show them.

use std::fmt::Write as _;

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::terminal;

/// The largest image that is shown. Larger ones can be saved.
const MAX_BYTES: usize = 4 << 20;
/// The length of one piece of Base64, as the protocol of kitty limits it.
const CHUNK: usize = 4096;
/// The bytes that every PNG begins with.
const PNG_SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// How a terminal takes images.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ImageProtocol {
    /// The graphics protocol of kitty, which takes PNG.
    Kitty,
    /// The inline images of iTerm2, which take what the system can decode.
    Iterm,
}

/// An image of a server, to be shown where the terminal can.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    bytes: Vec<u8>,
}

impl ImageProtocol {
    /// Returns the protocol of the terminal that these variables describe.
    pub(super) fn detect(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let is = |name: &str, values: &[&str]| variable(name).is_some_and(|value| values.contains(&&*value));
        let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
        // A multiplexer draws the screen itself, and would print the data as text or drop it.
        if is_set("TMUX") || is_set("STY") || is_set("ZELLIJ") {
            return None;
        }
        if is("TERM", &["xterm-kitty", "xterm-ghostty"]) || is("TERM_PROGRAM", &["ghostty"]) {
            return Some(Self::Kitty);
        }
        is("TERM_PROGRAM", &["iTerm.app", "WezTerm", "mintty"]).then_some(Self::Iterm)
    }
}

impl Image {
    /// Returns an image of a type that terminals show. `None` for others, and for one that is too large.
    pub(crate) fn new(mime_type: &str, bytes: &[u8]) -> Option<Self> {
        let is_shown = matches!(mime_type, "image/png" | "image/jpeg" | "image/gif" | "image/webp");
        (is_shown && !bytes.is_empty() && bytes.len() <= MAX_BYTES).then(|| Self { bytes: bytes.to_vec() })
    }

    /// Appends the sequence that shows the image. Nothing if the protocol has none for it.
    ///
    /// The data are Base64 of our own encoding: whatever the bytes are, they cannot end the sequence.
    pub(super) fn render(&self, protocol: ImageProtocol, out: &mut String) {
        match protocol {
            ImageProtocol::Kitty => self.render_kitty(terminal::size_in_pixels(), out),
            ImageProtocol::Iterm => {
                let (size, data) = (self.bytes.len(), STANDARD.encode(&self.bytes));
                let _ = writeln!(out, "\x1b]1337;File=inline=1;size={size}:{data}\x07");
            }
        }
    }

    fn render_kitty(&self, terminal: Option<terminal::PixelSize>, out: &mut String) {
        let Some(width) = self.png_width() else { return };
        // An image that is wider than the terminal would be cut off.
        let fitted = terminal.filter(|terminal| width > terminal.width).map(|terminal| terminal.columns);
        let columns = fitted.map(|columns| format!(",c={columns}")).unwrap_or_default();
        let data = STANDARD.encode(&self.bytes);
        let mut rest = &*data;
        let mut control = format!("a=T,f=100,q=2{columns},");
        while !rest.is_empty() {
            let (chunk, next) = rest.split_at(rest.len().min(CHUNK));
            let more = u8::from(!next.is_empty());
            let _ = write!(out, "\x1b_G{control}m={more};{chunk}\x1b\\");
            control.clear();
            rest = next;
        }
        out.push('\n');
    }

    /// Returns the width in pixels, if the bytes begin as a PNG does.
    fn png_width(&self) -> Option<u32> {
        let width = self.bytes.strip_prefix(PNG_SIGNATURE)?.get(8..12)?;
        Some(u32::from_be_bytes(width.try_into().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A PNG of this width, as far as its header.
    fn png(width: u32, length: usize) -> Image {
        let mut bytes = [PNG_SIGNATURE, b"\0\0\0\x0dIHDR", &width.to_be_bytes()].concat();
        bytes.resize(length, 0xff);
        Image::new("image/png", &bytes).unwrap()
    }

    fn kitty(image: &Image, terminal: Option<terminal::PixelSize>) -> String {
        let mut out = String::new();
        image.render_kitty(terminal, &mut out);
        out
    }

    #[test]
    fn terminals_are_known_by_their_variables() {
        let detected = |set: &[(&str, &str)]| {
            let value = |name: &str| {
                set.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned())
            };
            ImageProtocol::detect(value)
        };
        assert_eq!(detected(&[("TERM", "xterm-kitty")]), Some(ImageProtocol::Kitty));
        assert_eq!(detected(&[("TERM_PROGRAM", "ghostty")]), Some(ImageProtocol::Kitty));
        assert_eq!(detected(&[("TERM_PROGRAM", "WezTerm"), ("TMUX", "")]), Some(ImageProtocol::Iterm));
        assert_eq!(detected(&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "Apple_Terminal")]), None);
        assert_eq!(detected(&[("TERM", "xterm-kitty"), ("TMUX", "/tmp/tmux,1,0")]), None);
        assert_eq!(detected(&[]), None);
    }

    #[test]
    fn only_images_of_known_types_and_sizes_are_shown() {
        assert!(Image::new("image/svg+xml", b"<svg/>").is_none());
        assert!(Image::new("image/png", b"").is_none());
        assert!(Image::new("image/png", &vec![0; MAX_BYTES]).is_some());
        assert!(Image::new("image/png", &vec![0; MAX_BYTES + 1]).is_none());
    }

    #[test]
    fn kitty_gets_a_png_in_pieces() {
        let shown = kitty(&png(10, 4096), None);
        let pieces: Vec<_> = shown.split_inclusive("\x1b\\").collect();
        assert!(pieces[0].starts_with("\x1b_Ga=T,f=100,q=2,m=1;iVBORw0KGgo"), "{}", &pieces[0][..40]);
        assert!(pieces[1].starts_with("\x1b_Gm=0;"), "{:?}", pieces[1]);
        assert_eq!(pieces[2..], ["\n"]);
        assert!(pieces.iter().all(|piece| piece.len() <= CHUNK + 40));
    }

    #[test]
    fn a_wide_image_is_fitted_to_the_terminal() {
        let terminal = Some(terminal::PixelSize { width: 800, columns: 100 });
        assert!(kitty(&png(801, 64), terminal).starts_with("\x1b_Ga=T,f=100,q=2,c=100,m=0;"));
        assert!(kitty(&png(800, 64), terminal).starts_with("\x1b_Ga=T,f=100,q=2,m=0;"));
    }

    #[test]
    fn kitty_gets_nothing_but_png() {
        assert_eq!(kitty(&Image::new("image/png", b"\x1b\\GIF89a").unwrap(), None), "");
        assert_eq!(kitty(&Image::new("image/jpeg", b"\xff\xd8\xff").unwrap(), None), "");
    }

    #[test]
    fn bytes_cannot_end_the_sequence() {
        let mut out = String::new();
        Image::new("image/gif", b"\x07\x1b\\").unwrap().render(ImageProtocol::Iterm, &mut out);
        assert_eq!(out, "\x1b]1337;File=inline=1;size=3:Bxtc\x07\n");
    }
}
