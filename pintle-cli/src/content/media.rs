use std::{fs, io, path::Path};

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::{
    failure::Failure,
    output::{Image, Text, Tone},
};

/// An image, audio or other data of a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Media<'a> {
    kind: &'static str,
    mime_type: &'a str,
    base64: &'a str,
}

/// Decodes Base64 of a server.
pub(crate) fn decode(base64: &str) -> Result<Vec<u8>, Failure> {
    STANDARD.decode(base64).map_err(|error| {
        Failure::new(
            crate::failure::Exit::Server,
            format!("the server sent data that is not Base64: {error}"),
            "the same command with `--json`",
        )
    })
}

impl<'a> Media<'a> {
    pub(crate) fn new(kind: &'static str, mime_type: &'a str, base64: &'a str) -> Self {
        Self { kind, mime_type, base64 }
    }

    /// Prints a line about the data, saves it if there is a directory, and shows an image where the terminal can.
    pub(super) fn print(self, number: usize, save: Option<&Path>, text: &mut Text) -> Result<(), Failure> {
        let bytes = decode(self.base64)?;
        text.tone(Tone::Faint, self.kind).add(": ").add(self.mime_type).add(", ");
        text.add(bytes.len()).add(" bytes");
        match save {
            Some(directory) => {
                let path = directory.join(format!("{}-{}.{}", self.kind, number + 1, self.extension()));
                write(&path, &bytes)?;
                text.add(", saved as ").add(path.display());
            }
            None => {
                text.tone(Tone::Faint, "; `--save DIR` writes it to a file");
            }
        }
        text.end();
        if let Some(image) = Image::new(self.mime_type, &bytes) {
            text.image(image);
        }
        Ok(())
    }

    /// Returns the extension of a file. It is never what the server sent.
    fn extension(&self) -> &'static str {
        match self.mime_type {
            "image/png" => "png",
            "image/jpeg" => "jpg",
            "image/gif" => "gif",
            "image/webp" => "webp",
            "image/svg+xml" => "svg",
            "audio/wav" | "audio/x-wav" => "wav",
            "audio/mpeg" => "mp3",
            "audio/ogg" => "ogg",
            "application/pdf" => "pdf",
            _ => "bin",
        }
    }
}

/// Writes a new file. A file that exists is not overwritten.
fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let unwritten = |error: io::Error| {
        let next = match error.kind() {
            io::ErrorKind::AlreadyExists => "the same command with another directory after `--save`",
            _ => "the same command with a directory that you may write to after `--save`",
        };
        Failure::usage(format!("`{}` cannot be written: {error}", path.display()), next)
    };
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(unwritten)?;
    }
    let mut file = fs::File::create_new(path).map_err(unwritten)?;
    io::Write::write_all(&mut file, bytes).map_err(unwritten)
}
