//! Plays all of `tests/transcripts`.

use std::{fs, path::Path};

use crate::script::{Script, scripts};

fn all() -> Vec<Script> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let read = |file: &std::path::PathBuf| {
        scripts(&file.file_name().unwrap().to_string_lossy(), &fs::read_to_string(file).unwrap())
    };
    files.iter().flat_map(read).collect()
}

#[test]
fn every_transcript_plays_as_written() {
    let wrong: Vec<_> = all().iter().flat_map(Script::play).collect();
    assert!(wrong.is_empty(), "{} went wrong\n{}", wrong.len(), wrong.join("\n"));
}
