/// A media type.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Type {
    pub(super) name: &'static str,
    /// Whether a file of this type may be text.
    pub(super) text: bool,
}

/// Returns the media type for a file name, if its extension is well known.
pub(super) fn from_name(name: &str) -> Option<Type> {
    let (stem, extension) = name.rsplit_once('.')?;
    if stem.is_empty() {
        return None;
    }
    let extension = extension.to_ascii_lowercase();
    let find = |types: &[(&'static str, &str)]| {
        types.iter().find_map(|(name, extensions)| {
            extensions.split(' ').any(|known| known == extension).then_some(*name)
        })
    };
    find(TEXT)
        .map(|name| Type { name, text: true })
        .or_else(|| find(BINARY).map(|name| Type { name, text: false }))
}

const TEXT: &[(&str, &str)] = &[
    ("text/plain", "txt text log conf cfg ini env"),
    ("text/markdown", "md markdown"),
    ("text/html", "html htm"),
    ("text/css", "css"),
    ("text/csv", "csv"),
    ("text/tab-separated-values", "tsv"),
    ("text/javascript", "js mjs cjs"),
    ("text/calendar", "ics"),
    ("text/x-rust", "rs"),
    ("text/x-python", "py"),
    ("text/x-c", "c h"),
    ("text/x-c++", "cc cpp cxx hh hpp"),
    ("text/x-go", "go"),
    ("text/x-java", "java"),
    ("text/x-typescript", "ts tsx"),
    ("text/x-shellscript", "sh bash"),
    ("text/x-diff", "diff patch"),
    ("application/json", "json"),
    ("application/jsonl", "jsonl ndjson"),
    ("application/schema+json", "jsonschema"),
    ("application/xml", "xml xsd xsl"),
    ("application/yaml", "yaml yml"),
    ("application/toml", "toml"),
    ("application/sql", "sql"),
    ("application/rtf", "rtf"),
    ("image/svg+xml", "svg"),
];

const BINARY: &[(&str, &str)] = &[
    ("image/png", "png"),
    ("image/jpeg", "jpg jpeg"),
    ("image/gif", "gif"),
    ("image/webp", "webp"),
    ("image/avif", "avif"),
    ("image/bmp", "bmp"),
    ("image/tiff", "tif tiff"),
    ("image/vnd.microsoft.icon", "ico"),
    ("audio/mpeg", "mp3"),
    ("audio/wav", "wav"),
    ("audio/ogg", "ogg oga opus"),
    ("audio/flac", "flac"),
    ("audio/mp4", "m4a"),
    ("video/mp4", "mp4"),
    ("video/webm", "webm"),
    ("video/quicktime", "mov"),
    ("font/woff2", "woff2"),
    ("font/woff", "woff"),
    ("font/ttf", "ttf"),
    ("application/pdf", "pdf"),
    ("application/zip", "zip"),
    ("application/gzip", "gz tgz"),
    ("application/zstd", "zst"),
    ("application/x-tar", "tar"),
    ("application/wasm", "wasm"),
    ("application/vnd.sqlite3", "sqlite sqlite3"),
    ("application/vnd.apache.parquet", "parquet"),
    ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"),
    ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"),
    ("application/vnd.openxmlformats-officedocument.presentationml.presentation", "pptx"),
    ("application/epub+zip", "epub"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_extension() {
        for (name, known) in [
            ("a.md", Some("text/markdown")),
            ("A.JSON", Some("application/json")),
            ("a.tar.gz", Some("application/gzip")),
            ("a.png", Some("image/png")),
            ("a.unknown", None),
            ("md", None),
            (".md", None),
            ("a.", None),
            ("a. ", None),
        ] {
            assert_eq!(from_name(name).map(|known| known.name), known, "{name}");
        }
    }
}
