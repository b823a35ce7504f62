use std::{fmt, fs::File, io::Read, path::Path};

use base64::{DecodeError, Engine as _, engine::general_purpose::STANDARD};
use pintle_types::{
    Meta,
    schema::{Annotations, AudioContent, ContentBlock, ImageContent, ResourceContents},
};

use super::{ContentError, format};

/// The default size limit of an image or audio: 8 MiB.
///
/// Hosts and models accept less than that. Link to larger content instead of sending it.
pub const MAX_BYTES: usize = 8 * 1024 * 1024;

/// The parts that images and audio have in common.
struct Media {
    mime: String,
    base64: String,
}

impl Media {
    fn declared(kind: &'static str, mime: &str, bytes: &[u8], limit: usize) -> Result<Self, ContentError> {
        sized(kind, bytes.len(), limit)?;
        let essence = essence(kind, mime)?;
        format::agree(&essence, bytes)
            .map_err(|found| ContentError::Mismatch { declared: mime.to_owned(), found })?;
        Ok(Self { mime: mime.to_owned(), base64: STANDARD.encode(bytes) })
    }

    fn detected(kind: &'static str, bytes: &[u8], limit: usize) -> Result<Self, ContentError> {
        sized(kind, bytes.len(), limit)?;
        let found = format::detect(bytes).ok_or(ContentError::Unknown { kind })?.name();
        essence(kind, found)?;
        Ok(Self { mime: found.to_owned(), base64: STANDARD.encode(bytes) })
    }

    fn encoded(kind: &'static str, mime: &str, base64: String, limit: usize) -> Result<Self, ContentError> {
        sized(kind, base64.len() / 4 * 3, limit.saturating_add(2))?;
        if base64.starts_with("data:") {
            let reason = "it is a `data:` URL; pass the part after `base64,`".to_owned();
            return Err(ContentError::Base64 { kind, reason });
        }
        let bytes = STANDARD
            .decode(&base64)
            .map_err(|error| ContentError::Base64 { kind, reason: refusal(&base64, &error) })?;
        Self::declared(kind, mime, &bytes, limit).map(|media| Self { base64, ..media })
    }

    async fn read(kind: &'static str, path: &Path, limit: usize) -> Result<Self, ContentError> {
        let (opened, room) = (path.to_owned(), u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1));
        let reading = tokio::task::spawn_blocking(move || {
            let mut bytes = Vec::new();
            File::open(opened)?.take(room).read_to_end(&mut bytes).map(|_| bytes)
        });
        let bytes = reading
            .await
            .unwrap_or_else(|gone| Err(gone.into()))
            .map_err(|source| ContentError::File { path: path.display().to_string(), source })?;
        if bytes.len() > limit {
            return Err(ContentError::TooLarge { kind, bytes: None, limit });
        }
        Self::detected(kind, &bytes, limit)
    }
}

fn sized(kind: &'static str, bytes: usize, limit: usize) -> Result<(), ContentError> {
    match bytes {
        0 => Err(ContentError::Empty { kind }),
        _ if bytes > limit => Err(ContentError::TooLarge { kind, bytes: u64::try_from(bytes).ok(), limit }),
        _ => Ok(()),
    }
}

/// Returns a media type in lower case and without parameters, if it is of this kind.
fn essence(kind: &'static str, declared: &str) -> Result<String, ContentError> {
    let essence = declared.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte);
    match essence.split_once('/') {
        Some((named, rest)) if named == kind && !rest.is_empty() && rest.bytes().all(fits) => Ok(essence),
        _ => Err(ContentError::Type { kind, declared: declared.to_owned() }),
    }
}

fn refusal(text: &str, error: &DecodeError) -> String {
    match error {
        DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol(at, _) => {
            let shown = text.get(*at..).and_then(|rest| rest.chars().next()).unwrap_or_default();
            format!("`{shown}` at byte {at} is not allowed there; use `A-Z a-z 0-9 + /` and `=` at the end")
        }
        _ => "it is incomplete; pad it with `=` to a multiple of 4".to_owned(),
    }
}

macro_rules! impl_media {
    ($media:ident, $content:ident, $variant:ident, $kind:literal) => {
        impl $media {
            #[doc = concat!("Creates a value from bytes of a declared media type, `", $kind, "/…`. Bytes of a known format must match it.")]
            ///
            /// # Errors
            ///
            /// Fails if the bytes are empty, too many, or of another type.
            pub fn new(mime_type: impl AsRef<str>, bytes: impl AsRef<[u8]>) -> Result<Self, ContentError> {
                Self::new_within(MAX_BYTES, mime_type, bytes)
            }

            /// Creates a value like [`new`](Self::new), with another limit than [`MAX_BYTES`].
            ///
            /// # Errors
            ///
            /// Fails like [`new`](Self::new).
            pub fn new_within(
                limit: usize,
                mime_type: impl AsRef<str>,
                bytes: impl AsRef<[u8]>,
            ) -> Result<Self, ContentError> {
                Media::declared($kind, mime_type.as_ref(), bytes.as_ref(), limit).map(Self::from_media)
            }

            /// Creates a value from bytes whose media type is detected.
            ///
            /// # Errors
            ///
            #[doc = concat!("Fails if the bytes are empty, too many, or of no known ", $kind, " format.")]
            pub fn detect(bytes: impl AsRef<[u8]>) -> Result<Self, ContentError> {
                Media::detected($kind, bytes.as_ref(), MAX_BYTES).map(Self::from_media)
            }

            /// Creates a value from base64 (standard alphabet, padded) of a declared media type.
            ///
            /// # Errors
            ///
            /// Fails if the text is not base64, or if [`new`](Self::new) refuses its bytes.
            pub fn from_base64(
                mime_type: impl AsRef<str>,
                base64: impl Into<String>,
            ) -> Result<Self, ContentError> {
                Media::encoded($kind, mime_type.as_ref(), base64.into(), MAX_BYTES).map(Self::from_media)
            }

            /// Reads a file. Its media type is detected from its contents, not from its name.
            ///
            /// # Errors
            ///
            /// Fails if the file cannot be read, or if [`detect`](Self::detect) refuses its bytes.
            pub async fn read(path: impl AsRef<Path>) -> Result<Self, ContentError> {
                Self::read_within(MAX_BYTES, path).await
            }

            /// Reads a file like [`read`](Self::read), with another limit than [`MAX_BYTES`]. Bytes beyond the limit are not read.
            ///
            /// # Errors
            ///
            /// Fails like [`read`](Self::read).
            pub async fn read_within(limit: usize, path: impl AsRef<Path>) -> Result<Self, ContentError> {
                Media::read($kind, path.as_ref(), limit).await.map(Self::from_media)
            }

            fn from_media(media: Media) -> Self {
                Self($content::new(media.base64, media.mime))
            }

            /// Sets the annotations: audience and priority.
            #[must_use]
            pub fn annotations(mut self, annotations: Annotations) -> Self {
                self.0.annotations = Some(annotations);
                self
            }

            /// Sets the `_meta` member, and replaces what it was.
            #[must_use]
            pub fn meta(mut self, meta: Meta) -> Self {
                self.0.meta = Some(meta);
                self
            }

            /// Returns the media type.
            #[must_use]
            pub fn mime_type(&self) -> &str {
                &self.0.mime_type
            }

            /// Returns the decoded bytes.
            #[must_use]
            pub fn bytes(&self) -> Vec<u8> {
                // It was encoded here, or decoded once before.
                STANDARD.decode(&self.0.data).unwrap_or_default()
            }

            /// Returns this value as the contents of the resource at a URI.
            #[must_use]
            pub fn into_contents(self, uri: impl Into<String>) -> ResourceContents {
                let mut contents = ResourceContents::blob(uri, self.0.data);
                contents.mime_type = Some(self.0.mime_type);
                contents
            }
        }

        impl From<$media> for ContentBlock {
            fn from(media: $media) -> Self {
                Self::$variant(media.0)
            }
        }

        /// Validates content that was received from a peer.
        impl TryFrom<$content> for $media {
            type Error = ContentError;

            fn try_from(content: $content) -> Result<Self, ContentError> {
                Media::encoded($kind, &content.mime_type, content.data.clone(), usize::MAX)?;
                Ok(Self(content))
            }
        }

        impl fmt::Debug for $media {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let (mime, bytes) = (&self.0.mime_type, self.0.data.len() / 4 * 3);
                write!(f, concat!(stringify!($media), "({}, about {} bytes)"), mime, bytes)
            }
        }
    };
}

/// An image: bytes with a matching media type.
///
/// ```
/// use pintle::content::{ContentError, Image};
///
/// # const PIXEL: &[u8] = b"\x89PNG\r\n\x1a\n";
/// /// Draws a chart.
/// async fn chart() -> Result<Image, ContentError> {
///     let png: &[u8] = PIXEL; // drawn somehow
///     Image::new("image/png", png)
/// }
///
/// let chart = pintle::server::tool("chart", chart);
/// let wrong = Image::new("image/jpeg", PIXEL).unwrap_err();
/// assert_eq!(wrong.to_string(), "the bytes are `image/png`, but the declared type is `image/jpeg`: declare the actual type");
/// ```
#[derive(Clone, PartialEq)]
pub struct Image(ImageContent);

/// Audio: bytes with a matching media type.
///
/// Clients of the first revision do not support audio and receive a line of text instead.
///
/// The formats that are recognized are WAV, FLAC, Ogg, AIFF, MP4, WebM, MIDI, AMR, AAC and MP3. The protocol has no fields for
/// the [duration](Self::duration) and the [sample rate](Self::sample_rate), which are sent as metadata.
///
/// ```
/// use pintle::content::{Audio, ContentError};
///
/// async fn speak() -> Result<(&'static str, Audio), ContentError> {
///     let wav = b"RIFF\x04\0\0\0WAVE"; // spoken somehow
///     Ok(("Here you are:", Audio::detect(wav)?))
/// }
///
/// let speak = pintle::server::tool("speak", speak);
/// ```
#[derive(Clone, PartialEq)]
pub struct Audio(pub(super) AudioContent);

impl_media!(Image, ImageContent, Image, "image");
impl_media!(Audio, AudioContent, Audio, "audio");

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

    fn message<T: fmt::Debug>(result: Result<T, ContentError>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn an_image_is_bytes_and_a_matching_type() {
        let image = Image::new("image/png", PNG).unwrap();
        assert_eq!((image.mime_type(), image.bytes()), ("image/png", PNG.to_vec()));
        assert_eq!(Image::detect(PNG).unwrap(), image);
        assert_eq!(Image::from_base64("image/png", "iVBORw0KGgo=").unwrap(), image);
        assert_eq!(
            serde_json::to_value(ContentBlock::from(image)).unwrap(),
            serde_json::json!({"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"})
        );
        Audio::new("audio/ogg; codecs=opus", b"OggS\0").unwrap();
        Audio::new("AUDIO/MPEG", b"ID3\x04").unwrap();
    }

    #[test]
    fn what_is_not_an_image_is_refused() {
        for (actual, expected) in [
            (message(Image::new("image/png", b"")), "the image is empty: pass at least one byte"),
            (
                message(Image::new_within(4, "image/png", PNG)),
                "the image has 8 bytes; the limit is 4 bytes: reduce its size, or return a link to it",
            ),
            (message(Image::new("audio/wav", PNG)), "`audio/wav` is not an image type: use `image/…`"),
            (message(Image::new("image/", PNG)), "`image/` is not an image type: use `image/…`"),
            (message(Image::new("png", PNG)), "`png` is not an image type: use `image/…`"),
            (
                message(Image::new("image/png", b"hello")),
                "the bytes are not `image/png`: declare the actual type",
            ),
            (message(Audio::detect(PNG)), "`image/png` is not an audio type: use `audio/…`"),
            (
                message(Audio::detect(b"hello")),
                "the audio format of the bytes is unknown: declare it with `new`",
            ),
        ] {
            assert_eq!(actual, expected);
        }
        let large = vec![0; MAX_BYTES + 1];
        assert_eq!(
            message(Audio::new("audio/l16", large)),
            "the audio has 8388609 bytes; the limit is 8388608 bytes: reduce its size, or return a link to it"
        );
    }

    #[test]
    fn base64_is_checked() {
        let refused = |text: &str| message(Image::from_base64("image/png", text));
        assert_eq!(
            refused("iVBORw0KGgo-"),
            "the image is not valid base64: `-` at byte 11 is not allowed there; use `A-Z a-z 0-9 + /` and `=` at the end"
        );
        assert_eq!(
            refused("iVBORw0KGgo"),
            "the image is not valid base64: it is incomplete; pad it with `=` to a multiple of 4"
        );
        assert_eq!(
            refused("data:image/png;base64,iVBORw0KGgo="),
            "the image is not valid base64: it is a `data:` URL; pass the part after `base64,`"
        );
        assert_eq!(refused("AAAA"), "the bytes are not `image/png`: declare the actual type");
        assert!(Image::try_from(ImageContent::new("AAAA!", "image/png")).is_err());
        assert!(Image::try_from(ImageContent::new("iVBORw0KGgo=", "image/png")).is_ok());
    }

    #[tokio::test]
    async fn the_type_of_a_file_is_detected() {
        let path = std::env::temp_dir().join(format!("pintle-content-{}.jpg", std::process::id()));
        std::fs::write(&path, PNG).unwrap();
        assert_eq!(Image::read(&path).await.unwrap().mime_type(), "image/png");
        assert_eq!(
            message(Image::read_within(7, &path).await),
            "the image is too large; the limit is 7 bytes: reduce its size, or return a link to it"
        );
        std::fs::remove_file(&path).unwrap();
        let gone = message(Image::read(&path).await);
        assert!(gone.starts_with(&format!("`{}` cannot be read: ", path.display())), "{gone}");
    }
}
