//! Image and audio formats, detected by their first bytes.

/// A format that is identified by its first bytes.
pub(super) struct Format {
    /// The media types, the preferred one first.
    names: &'static [&'static str],
    /// Magic bytes with their offsets. All of them are required.
    begins: &'static [(usize, &'static [u8])],
}

const fn format(names: &'static [&'static str], begins: &'static [(usize, &'static [u8])]) -> Format {
    Format { names, begins }
}

/// The known formats. A format may have several signatures. The containers `ftyp` and `RIFF` are identified by their brand.
const FORMATS: &[Format] = &[
    format(&["image/png", "image/apng"], &[(0, b"\x89PNG\r\n\x1a\n")]),
    format(&["image/jpeg", "image/jpg"], &[(0, b"\xff\xd8\xff")]),
    format(&["image/gif"], &[(0, b"GIF87a")]),
    format(&["image/gif"], &[(0, b"GIF89a")]),
    format(&["image/webp"], &[(0, b"RIFF"), (8, b"WEBP")]),
    format(&["image/bmp", "image/x-ms-bmp"], &[(0, b"BM"), (6, b"\0\0\0\0")]),
    format(&["image/tiff"], &[(0, b"II*\0")]),
    format(&["image/tiff"], &[(0, b"MM\0*")]),
    format(&["image/vnd.microsoft.icon", "image/x-icon"], &[(0, b"\0\0\x01\0")]),
    format(&["image/avif"], &[(4, b"ftypavif")]),
    format(&["image/avif"], &[(4, b"ftypavis")]),
    format(&["image/heic", "image/heif"], &[(4, b"ftyphei")]),
    format(&["image/heif", "image/heic", "image/avif"], &[(4, b"ftypmif1")]),
    format(&["image/jxl"], &[(0, b"\0\0\0\x0cJXL \r\n\x87\n")]),
    format(&["image/jxl"], &[(0, b"\xff\x0a")]),
    format(&["image/svg+xml"], &[(0, b"<svg")]),
    format(&["image/svg+xml"], &[(0, b"<?xml")]),
    format(&["audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave"], &[(0, b"RIFF"), (8, b"WAVE")]),
    format(&["audio/flac", "audio/x-flac"], &[(0, b"fLaC")]),
    format(&["audio/ogg", "audio/opus", "audio/vorbis"], &[(0, b"OggS")]),
    format(&["audio/aiff", "audio/x-aiff"], &[(0, b"FORM"), (8, b"AIF")]),
    format(&["audio/mp4", "audio/m4a", "audio/x-m4a", "audio/aac"], &[(4, b"ftypM4A")]),
    format(&["audio/mp4", "audio/m4a", "audio/x-m4a", "audio/aac"], &[(4, b"ftypmp4")]),
    format(&["audio/mp4", "audio/m4a", "audio/x-m4a", "audio/aac"], &[(4, b"ftypiso")]),
    format(&["audio/webm"], &[(0, b"\x1a\x45\xdf\xa3")]),
    format(&["audio/midi", "audio/x-midi"], &[(0, b"MThd")]),
    format(&["audio/amr"], &[(0, b"#!AMR")]),
    // The second byte of a frame contains its layer: layer 0 is AAC, the others are MPEG audio.
    format(&["audio/aac", "audio/x-aac", "audio/aacp"], &[(0, b"\xff\xf1")]),
    format(&["audio/aac", "audio/x-aac", "audio/aacp"], &[(0, b"\xff\xf9")]),
    format(&["audio/mpeg", "audio/mp3", "audio/x-mp3"], &[(0, b"ID3")]),
    format(&["audio/mpeg", "audio/mp3", "audio/x-mp3"], &[(0, b"\xff\xfb")]),
    format(&["audio/mpeg", "audio/mp3", "audio/x-mp3"], &[(0, b"\xff\xfa")]),
    format(&["audio/mpeg", "audio/mp3", "audio/x-mp3"], &[(0, b"\xff\xf3")]),
    format(&["audio/mpeg", "audio/mp3", "audio/x-mp3"], &[(0, b"\xff\xf2")]),
    format(&["audio/mpeg", "audio/mp3", "audio/x-mp3"], &[(0, b"\xff\xe3")]),
];

/// Signatures with fewer nonzero bytes are ambiguous, because raw samples may begin with them.
const PROOF: usize = 3;

impl Format {
    /// Returns the preferred media type.
    pub(super) fn name(&self) -> &'static str {
        self.names.first().copied().unwrap_or_default()
    }

    fn fits(&self, bytes: &[u8]) -> bool {
        let has = |(at, magic): &(usize, &[u8])| bytes.get(*at..).is_some_and(|rest| rest.starts_with(magic));
        self.begins.iter().all(has)
    }

    fn is_proof(&self) -> bool {
        self.begins.iter().flat_map(|(_, magic)| *magic).filter(|byte| **byte != 0).count() >= PROOF
    }
}

/// Returns the format of some bytes.
pub(super) fn detect(bytes: &[u8]) -> Option<&'static Format> {
    let bytes = unprefixed(bytes);
    FORMATS.iter().find(|format| format.fits(bytes))
}

/// Checks that bytes are compatible with a media type (in lower case, without parameters). Fails with the detected type.
///
/// Bytes of a known type need its signature. Bytes of an unknown type must not have the signature of a known one.
pub(super) fn agree(declared: &str, bytes: &[u8]) -> Result<(), Option<&'static str>> {
    let found = detect(bytes);
    let known = FORMATS.iter().any(|format| format.names.contains(&declared));
    match found {
        Some(found) if found.names.contains(&declared) => Ok(()),
        Some(found) if known || found.is_proof() => Err(Some(found.name())),
        None if known => Err(None),
        _ => Ok(()),
    }
}

/// Strips a byte order mark and whitespace before the markup of a text-based image.
fn unprefixed(bytes: &[u8]) -> &[u8] {
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
    if text.starts_with(b"<") { text } else { bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_detected_by_their_first_bytes() {
        for (bytes, name) in [
            (&b"\x89PNG\r\n\x1a\n\0\0"[..], Some("image/png")),
            (b"\xff\xd8\xff\xe0", Some("image/jpeg")),
            (b"GIF89a..", Some("image/gif")),
            (b"RIFF\0\0\0\0WEBPVP8 ", Some("image/webp")),
            (b"RIFF\0\0\0\0WAVEfmt ", Some("audio/wav")),
            (b"RIFF\0\0\0\0AVI ", None),
            (b"\xef\xbb\xbf <?xml version='1.0'?><svg/>", Some("image/svg+xml")),
            (b"ID3\x04", Some("audio/mpeg")),
            (b"\xff\xfb\x90", Some("audio/mpeg")),
            (b"\xff\xf1\x50", Some("audio/aac")),
            (b"OggS\0", Some("audio/ogg")),
            (b"fLaC\0", Some("audio/flac")),
            (b"\0\0\0\x20ftypM4A ", Some("audio/mp4")),
            (b"\0\0\0\x20ftypavif", Some("image/avif")),
            (b"hello", None),
            (b"", None),
        ] {
            assert_eq!(detect(bytes).map(Format::name), name, "{bytes:?}");
        }
    }

    #[test]
    fn a_declared_type_agrees_or_not() {
        let (png, mp3) = (b"\x89PNG\r\n\x1a\n", b"\xff\xfb\x90");
        for (declared, bytes, expected) in [
            ("image/png", &png[..], Ok(())),
            ("image/jpeg", png, Err(Some("image/png"))),
            ("image/png", b"hello", Err(None)),
            ("image/x-own", b"hello", Ok(())),
            ("image/x-own", png, Err(Some("image/png"))),
            ("audio/mp3", mp3, Ok(())),
            ("audio/wav", mp3, Err(Some("audio/mpeg"))),
            // Samples may begin with any two bytes.
            ("audio/l16", mp3, Ok(())),
        ] {
            assert_eq!(agree(declared, bytes), expected, "{declared} {bytes:?}");
        }
    }
}
