use std::{fmt, fs::File, io::Read, path::Path};

use base64::{DecodeError, Engine as _, engine::general_purpose::STANDARD};
use pintle_types::{
    Meta,
    schema::{Annotations, AudioContent, ContentBlock, ImageContent, ResourceContents},
};

use super::{ContentError, format};

/// Bytes that a picture or a sound has at most, unless another number is given: 8 MiB.
///
/// Hosts and models take less; what is larger is better linked to than sent.
pub const MAX_BYTES: usize = 8 * 1024 * 1024;

/// What is known of both kinds of media.
struct Media {
    mime: String,
    base64: String,
}

impl Media {
    fn declared(kind: &'static str, mime: &str, bytes: &[u8], most: usize) -> Result<Self, ContentError> {
        sized(kind, bytes.len(), most)?;
        let essence = essence(kind, mime)?;
        format::agree(&essence, bytes)
            .map_err(|found| ContentError::Mismatch { declared: mime.to_owned(), found })?;
        Ok(Self { mime: mime.to_owned(), base64: STANDARD.encode(bytes) })
    }

    fn detected(kind: &'static str, bytes: &[u8], most: usize) -> Result<Self, ContentError> {
        sized(kind, bytes.len(), most)?;
        let found = format::detect(bytes).ok_or(ContentError::Unknown { kind })?.name();
        essence(kind, found)?;
        Ok(Self { mime: found.to_owned(), base64: STANDARD.encode(bytes) })
    }

    fn encoded(kind: &'static str, mime: &str, base64: String, most: usize) -> Result<Self, ContentError> {
        sized(kind, base64.len() / 4 * 3, most.saturating_add(2))?;
        if base64.starts_with("data:") {
            let said = "it is a `data:` URL; give what comes after `base64,`".to_owned();
            return Err(ContentError::Base64 { kind, said });
        }
        let bytes = STANDARD
            .decode(&base64)
            .map_err(|error| ContentError::Base64 { kind, said: refusal(&base64, &error) })?;
        Self::declared(kind, mime, &bytes, most).map(|media| Self { base64, ..media })
    }

    async fn read(kind: &'static str, path: &Path, most: usize) -> Result<Self, ContentError> {
        let (opened, room) = (path.to_owned(), u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1));
        let reading = tokio::task::spawn_blocking(move || {
            let mut bytes = Vec::new();
            File::open(opened)?.take(room).read_to_end(&mut bytes).map(|_| bytes)
        });
        let bytes = reading
            .await
            .unwrap_or_else(|gone| Err(gone.into()))
            .map_err(|source| ContentError::File { path: path.display().to_string(), source })?;
        if bytes.len() > most {
            return Err(ContentError::TooLarge { kind, bytes: None, most });
        }
        Self::detected(kind, &bytes, most)
    }
}

fn sized(kind: &'static str, bytes: usize, most: usize) -> Result<(), ContentError> {
    match bytes {
        0 => Err(ContentError::Empty { kind }),
        _ if bytes > most => Err(ContentError::TooLarge { kind, bytes: u64::try_from(bytes).ok(), most }),
        _ => Ok(()),
    }
}

/// A media type in lower case and without parameters, if it is of this kind.
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
            format!("`{shown}` at byte {at} has no place there; use `A-Z a-z 0-9 + /` and `=` at the end")
        }
        _ => "it ends too early; pad it with `=` to a multiple of 4".to_owned(),
    }
}

macro_rules! impl_media {
    ($media:ident, $content:ident, $variant:ident, $kind:literal) => {
        impl $media {
            #[doc = concat!("Bytes of a declared media type, `", $kind, "/…`. If their format is known they have to be of it.")]
            ///
            /// # Errors
            ///
            /// There are none, too many, or they are something else.
            pub fn new(mime_type: impl AsRef<str>, bytes: impl AsRef<[u8]>) -> Result<Self, ContentError> {
                Self::new_within(MAX_BYTES, mime_type, bytes)
            }

            /// As [`new`](Self::new), with another bound than [`MAX_BYTES`].
            ///
            /// # Errors
            ///
            /// As [`new`](Self::new).
            pub fn new_within(
                most: usize,
                mime_type: impl AsRef<str>,
                bytes: impl AsRef<[u8]>,
            ) -> Result<Self, ContentError> {
                Media::declared($kind, mime_type.as_ref(), bytes.as_ref(), most).map(Self::from_media)
            }

            /// Bytes whose media type is found by looking at them.
            ///
            /// # Errors
            ///
            #[doc = concat!("There are none, too many, or they are no ", $kind, " that is known.")]
            pub fn detect(bytes: impl AsRef<[u8]>) -> Result<Self, ContentError> {
                Media::detected($kind, bytes.as_ref(), MAX_BYTES).map(Self::from_media)
            }

            /// Base64 of a declared media type: standard alphabet, padded.
            ///
            /// # Errors
            ///
            /// It is not base64, or its bytes are refused by [`new`](Self::new).
            pub fn from_base64(
                mime_type: impl AsRef<str>,
                base64: impl Into<String>,
            ) -> Result<Self, ContentError> {
                Media::encoded($kind, mime_type.as_ref(), base64.into(), MAX_BYTES).map(Self::from_media)
            }

            /// A file. What it is is found by looking into it, whatever its name says.
            ///
            /// # Errors
            ///
            /// It cannot be read, or its bytes are refused by [`detect`](Self::detect).
            pub async fn read(path: impl AsRef<Path>) -> Result<Self, ContentError> {
                Self::read_within(MAX_BYTES, path).await
            }

            /// As [`read`](Self::read), with another bound than [`MAX_BYTES`]. No more than that is read.
            ///
            /// # Errors
            ///
            /// As [`read`](Self::read).
            pub async fn read_within(most: usize, path: impl AsRef<Path>) -> Result<Self, ContentError> {
                Media::read($kind, path.as_ref(), most).await.map(Self::from_media)
            }

            fn from_media(media: Media) -> Self {
                Self($content::new(media.base64, media.mime))
            }

            /// Whom it is for, and how much it matters.
            #[must_use]
            pub fn annotations(mut self, annotations: Annotations) -> Self {
                self.0.annotations = Some(annotations);
                self
            }

            /// Anything else that clients may want to know.
            #[must_use]
            pub fn meta(mut self, meta: Meta) -> Self {
                self.0.meta = Some(meta);
                self
            }

            /// Its media type.
            #[must_use]
            pub fn mime_type(&self) -> &str {
                &self.0.mime_type
            }

            /// Its bytes.
            #[must_use]
            pub fn bytes(&self) -> Vec<u8> {
                // It was encoded here, or decoded once before.
                STANDARD.decode(&self.0.data).unwrap_or_default()
            }

            /// The same as what a resource at this URI holds.
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

        /// What came from somebody else, checked.
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

/// A picture: bytes and a media type that agree.
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
/// assert_eq!(wrong.to_string(), "the bytes are `image/png`, and are said to be `image/jpeg`: say what they are");
/// ```
#[derive(Clone, PartialEq)]
pub struct Image(ImageContent);

/// A sound: bytes and a media type that agree.
///
/// Clients of the first revision know no sound and get a line of text that says so.
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
pub struct Audio(AudioContent);

impl_media!(Image, ImageContent, Image, "image");
impl_media!(Audio, AudioContent, Audio, "audio");

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

    fn said<T: fmt::Debug>(result: Result<T, ContentError>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn a_picture_is_bytes_and_a_type_that_agree() {
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
    fn what_is_no_picture_is_refused() {
        for (told, expected) in [
            (said(Image::new("image/png", b"")), "the image has no bytes: give at least one"),
            (
                said(Image::new_within(4, "image/png", PNG)),
                "the image has 8 bytes, and 4 are the most: make it smaller, or give a link to it",
            ),
            (
                said(Image::new("audio/wav", PNG)),
                "`audio/wav` is no media type of image: it should be `image/…`",
            ),
            (said(Image::new("image/", PNG)), "`image/` is no media type of image: it should be `image/…`"),
            (said(Image::new("png", PNG)), "`png` is no media type of image: it should be `image/…`"),
            (
                said(Image::new("image/png", b"hello")),
                "the bytes do not begin as `image/png` does: say what they are",
            ),
            (said(Audio::detect(PNG)), "`image/png` is no media type of audio: it should be `audio/…`"),
            (
                said(Audio::detect(b"hello")),
                "the bytes are of no known format of audio: say which with `new`",
            ),
        ] {
            assert_eq!(told, expected);
        }
        let large = vec![0; MAX_BYTES + 1];
        assert_eq!(
            said(Audio::new("audio/l16", large)),
            "the audio has 8388609 bytes, and 8388608 are the most: make it smaller, or give a link to it"
        );
    }

    #[test]
    fn base64_is_checked() {
        let refused = |text: &str| said(Image::from_base64("image/png", text));
        assert_eq!(
            refused("iVBORw0KGgo-"),
            "the image is not in base64: `-` at byte 11 has no place there; use `A-Z a-z 0-9 + /` and `=` at the end"
        );
        assert_eq!(
            refused("iVBORw0KGgo"),
            "the image is not in base64: it ends too early; pad it with `=` to a multiple of 4"
        );
        assert_eq!(
            refused("data:image/png;base64,iVBORw0KGgo="),
            "the image is not in base64: it is a `data:` URL; give what comes after `base64,`"
        );
        assert_eq!(refused("AAAA"), "the bytes do not begin as `image/png` does: say what they are");
        assert!(Image::try_from(ImageContent::new("AAAA!", "image/png")).is_err());
        assert!(Image::try_from(ImageContent::new("iVBORw0KGgo=", "image/png")).is_ok());
    }

    #[tokio::test]
    async fn a_file_is_looked_into() {
        let path = std::env::temp_dir().join(format!("pintle-content-{}.jpg", std::process::id()));
        std::fs::write(&path, PNG).unwrap();
        assert_eq!(Image::read(&path).await.unwrap().mime_type(), "image/png");
        assert_eq!(
            said(Image::read_within(7, &path).await),
            "the image has more bytes than it may have, and 7 are the most: make it smaller, or give a link to it"
        );
        std::fs::remove_file(&path).unwrap();
        let gone = said(Image::read(&path).await);
        assert!(gone.starts_with(&format!("`{}` cannot be read: ", path.display())), "{gone}");
    }
}
