use std::time::Duration;

use pintle_types::Meta;
use serde_json::{Value, json};

use super::Audio;

/// The duration and the sample rate of audio.
///
/// The protocol has no fields for them. They are sent under one key of the content's `_meta`, which other clients ignore.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct AudioProperties {
    /// The duration.
    pub duration: Option<Duration>,
    /// The number of samples per second of each channel.
    pub sample_rate: Option<u32>,
}

/// The key in the `_meta` of audio.
const KEY: &str = "dev.pintle/audio";
const DURATION: &str = "durationMs";
const SAMPLE_RATE: &str = "sampleRate";

impl Audio {
    /// Declares the duration. A fraction of a millisecond is dropped.
    ///
    /// ```
    /// use std::time::Duration;
    /// use pintle::content::Audio;
    ///
    /// let speech = Audio::new("audio/l16", [0; 64])?.duration(Duration::from_millis(2)).sample_rate(16_000);
    /// // A client reads it again:
    /// assert_eq!(speech.properties().sample_rate, Some(16_000));
    /// # Ok::<(), pintle::content::ContentError>(())
    /// ```
    #[must_use]
    pub fn duration(self, duration: Duration) -> Self {
        let milliseconds = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        self.property(DURATION, json!(milliseconds))
    }

    /// Declares the number of samples per second of each channel.
    #[must_use]
    pub fn sample_rate(self, hertz: u32) -> Self {
        self.property(SAMPLE_RATE, json!(hertz))
    }

    /// Declares the duration and the sample rate that the header of the bytes states, if they are WAV or FLAC. Those of other
    /// formats are not detected.
    #[must_use]
    pub fn detect_properties(self) -> Self {
        let AudioProperties { duration, sample_rate } = detect(&self.bytes());
        let audio = match duration {
            Some(duration) => self.duration(duration),
            None => self,
        };
        match sample_rate {
            Some(hertz) => audio.sample_rate(hertz),
            None => audio,
        }
    }

    /// Returns the duration and the sample rate, as far as they are declared. Unreadable values count as not declared.
    pub fn properties(&self) -> AudioProperties {
        let declared = self.0.meta.as_ref().and_then(|meta| meta.get(KEY));
        let number = |name: &str| declared?.get(name)?.as_u64();
        AudioProperties {
            duration: number(DURATION).map(Duration::from_millis),
            sample_rate: number(SAMPLE_RATE).and_then(|hertz| u32::try_from(hertz).ok()),
        }
    }

    fn property(mut self, name: &str, value: Value) -> Self {
        let meta = self.0.meta.get_or_insert_with(Meta::new).as_object_mut();
        let declared = meta.entry(KEY).or_insert_with(|| json!({}));
        if !declared.is_object() {
            *declared = json!({});
        }
        if let Some(declared) = declared.as_object_mut() {
            declared.insert(name.to_owned(), value);
        }
        self
    }
}

/// Returns what the header of WAV or FLAC states.
fn detect(bytes: &[u8]) -> AudioProperties {
    match bytes {
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', chunks @ ..] => wav(chunks),
        [b'f', b'L', b'a', b'C', blocks @ ..] => flac(blocks).unwrap_or_default(),
        _ => AudioProperties::default(),
    }
}

/// Reads the chunks of a WAV file up to its samples.
fn wav(mut chunks: &[u8]) -> AudioProperties {
    let mut found = AudioProperties::default();
    let mut bytes_per_second = 0;
    while let Some((name, size, rest)) = chunk(chunks) {
        let body = rest.get(..size).unwrap_or(rest);
        match name {
            b"fmt " => {
                found.sample_rate = little_endian(body, 4).filter(|hertz| *hertz > 0);
                bytes_per_second = little_endian(body, 8).unwrap_or_default();
            }
            b"data" => {
                // The size in a file that was streamed is a placeholder: the samples end with the file.
                found.duration = (body.len() as u64)
                    .checked_mul(1000)
                    .and_then(|samples| samples.checked_div(bytes_per_second.into()))
                    .map(Duration::from_millis);
                break;
            }
            _ => {}
        }
        // A chunk of odd size is padded.
        let Some(next) = rest.get(size.saturating_add(size % 2)..) else { break };
        chunks = next;
    }
    found
}

/// Returns the name and the size of the first chunk, and the bytes after its header.
fn chunk(bytes: &[u8]) -> Option<(&[u8], usize, &[u8])> {
    let (name, rest) = bytes.split_at_checked(4)?;
    let size = usize::try_from(little_endian(rest, 0)?).ok()?;
    Some((name, size, rest.get(4..)?))
}

fn little_endian(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|number| u32::from_le_bytes(*number))
}

/// Reads the first block of a FLAC stream, which describes it: 20 bits of sample rate, 8 of the format, 36 of length.
fn flac(blocks: &[u8]) -> Option<AudioProperties> {
    const STREAM_INFO: u8 = 0;
    let kind = blocks.first()? & 0x7f;
    let bits = u64::from_be_bytes(*blocks.get(14..)?.first_chunk()?);
    let hertz = u32::try_from(bits >> 44).ok().filter(|hertz| kind == STREAM_INFO && *hertz > 0)?;
    let samples = bits & ((1 << 36) - 1);
    // A length of 0 means that it is unknown.
    let duration = (samples > 0).then(|| Duration::from_millis(samples * 1000 / u64::from(hertz)));
    Some(AudioProperties { duration, sample_rate: Some(hertz) })
}

#[cfg(test)]
mod tests {
    use pintle_types::schema::{AudioContent, ContentBlock};

    use super::*;

    fn riff(chunks: &[(&[u8; 4], u32, &[u8])]) -> Vec<u8> {
        let mut bytes = b"RIFF\0\0\0\0WAVE".to_vec();
        for (name, size, body) in chunks {
            bytes.extend_from_slice(*name);
            bytes.extend_from_slice(&size.to_le_bytes());
            bytes.extend_from_slice(body);
        }
        bytes
    }

    /// The `fmt ` chunk of 16-bit mono.
    fn format(hertz: u32) -> Vec<u8> {
        let mut body = b"\x01\0\x01\0".to_vec();
        body.extend_from_slice(&hertz.to_le_bytes());
        body.extend_from_slice(&(hertz * 2).to_le_bytes());
        body.extend_from_slice(b"\x02\0\x10\0");
        body
    }

    fn properties(duration: Option<u64>, sample_rate: Option<u32>) -> AudioProperties {
        AudioProperties { duration: duration.map(Duration::from_millis), sample_rate }
    }

    #[test]
    fn what_is_declared_is_read_again_beside_other_metadata() {
        let mut meta = Meta::new();
        meta.insert("com.example/voice", "ann");
        let audio = Audio::detect(b"OggS\0").unwrap();
        assert_eq!(audio.properties(), AudioProperties::default());
        let audio = audio.meta(meta).duration(Duration::from_micros(2_500_900)).sample_rate(48_000);
        assert_eq!(audio.properties(), properties(Some(2500), Some(48_000)));
        let sent = serde_json::to_value(ContentBlock::from(audio)).unwrap();
        assert_eq!(
            sent["_meta"],
            json!({"com.example/voice": "ann", "dev.pintle/audio": {"durationMs": 2500, "sampleRate": 48_000}})
        );
    }

    #[test]
    fn what_a_peer_declares_badly_is_not_declared() {
        for declared in [json!(3), json!({"durationMs": -1, "sampleRate": 5_000_000_000_u64}), json!(null)] {
            let mut content = AudioContent::new("T2dnUw==", "audio/ogg");
            content.meta.get_or_insert_with(Meta::new).insert(KEY, declared);
            let audio = Audio::try_from(content).unwrap();
            assert_eq!(audio.properties(), AudioProperties::default());
            assert_eq!(audio.sample_rate(8000).properties(), properties(None, Some(8000)));
        }
    }

    #[test]
    fn headers_of_wav_and_flac_are_read() {
        let (format, samples) = (format(8000), [0; 8000]);
        let mut flac = b"fLaC\0\0\0\x22".to_vec();
        flac.extend_from_slice(&[0; 10]);
        flac.extend_from_slice(&(44_100_u64 << 44 | 1 << 41 | 15 << 36 | 441_000).to_be_bytes());
        let mut endless = flac.clone();
        endless[21..26].copy_from_slice(&[0xf0, 0, 0, 0, 0]);
        for (bytes, expected) in [
            (riff(&[(b"fmt ", 16, &format), (b"data", 8000, &samples)]), properties(Some(500), Some(8000))),
            // Another chunk of odd size is between them.
            (
                riff(&[(b"fmt ", 16, &format), (b"LIST", 3, b"abc\0"), (b"data", 8000, &samples)]),
                properties(Some(500), Some(8000)),
            ),
            // It was streamed.
            (
                riff(&[(b"fmt ", 16, &format), (b"data", u32::MAX, &samples)]),
                properties(Some(500), Some(8000)),
            ),
            (riff(&[(b"fmt ", 16, &format)]), properties(None, Some(8000))),
            // The rate of the samples is unknown, or 0.
            (riff(&[(b"data", 8000, &samples)]), properties(None, None)),
            (riff(&[(b"fmt ", 16, &[0; 16]), (b"data", 8000, &samples)]), properties(None, None)),
            (riff(&[(b"fmt ", u32::MAX, &format[..6])]), properties(None, None)),
            (riff(&[]), properties(None, None)),
            (flac.clone(), properties(Some(10_000), Some(44_100))),
            (endless, properties(None, Some(44_100))),
            (flac[..20].to_vec(), properties(None, None)),
            (b"OggS\0".to_vec(), properties(None, None)),
        ] {
            assert_eq!(
                Audio::detect(&bytes).unwrap().detect_properties().properties(),
                expected,
                "{bytes:?}"
            );
        }
    }
}
