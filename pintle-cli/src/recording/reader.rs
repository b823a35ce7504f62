use std::{fs::File, io::Read as _, path::Path};

use super::{RecordedLine, header::VERSION};
use crate::{args::quoted, failure::Failure};

/// The largest recording that is read.
const MAX_FILE: u64 = 256 << 20;

/// Reads a recording. A last line that was cut off is left out.
pub(crate) fn read(path: &Path) -> Result<Vec<RecordedLine>, Failure> {
    let shown = path.display().to_string();
    let mut text = String::new();
    let opened = File::open(path).and_then(|file| file.take(MAX_FILE + 1).read_to_string(&mut text));
    if let Err(error) = opened {
        let message = format!("the recording `{shown}` cannot be read: {error}");
        return Err(Failure::usage(message, format!("ls -l {}", quoted(&shown))));
    }
    if text.len() as u64 > MAX_FILE {
        let message = format!("the recording `{shown}` is larger than {} MiB: record less", MAX_FILE >> 20);
        return Err(Failure::usage(message, format!("ls -l {}", quoted(&shown))));
    }
    parse(&text).map_err(|reason| {
        let message = format!("`{shown}` is not a recording: {reason}");
        Failure::usage(message, format!("head -c 200 {}", quoted(&shown)))
    })
}

fn parse(text: &str) -> Result<Vec<RecordedLine>, String> {
    let mut lines = Vec::new();
    let mut part = 0;
    let count = text.lines().count();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
        let mut record: RecordedLine = match serde_json::from_str(line) {
            Ok(record) => record,
            Err(_) if at + 1 == count && part > 0 => break,
            Err(error) => return Err(format!("line {}: {error}", at + 1)),
        };
        match &record.recording {
            Some(header) if header.version != VERSION => {
                let version = header.version;
                return Err(format!("its format has version {version}, and this program reads {VERSION}"));
            }
            Some(_) => part += 1,
            None if part == 0 => return Err("its first line is not the header of a recording".to_owned()),
            None => {
                record.part = part;
                lines.push(record);
            }
        }
    }
    match part {
        0 => Err("it is empty".to_owned()),
        _ => Ok(lines),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_recording_is_refused_with_the_reason() {
        for (text, reason) in [
            ("", "it is empty"),
            ("{\"number\":1}\n", "its first line is not the header"),
            ("{\"recording\":{\"version\":2}}\n", "its format has version 2, and this program reads 1"),
            ("{\"recording\":{\"version\":1}}\nx\n{}\n", "line 2: "),
            ("GET / HTTP/1.1", "line 1: "),
        ] {
            let refused = parse(text).unwrap_err();
            assert!(refused.starts_with(reason), "{refused}");
        }
        // A process that was killed leaves part of a line.
        let lines = parse("{\"recording\":{\"version\":1}}\n{\"number\":1}\n{\"numb").unwrap();
        assert_eq!(lines.len(), 1);
        let twice = "{\"recording\":{\"version\":1}}\n{\"number\":1}\n".repeat(2);
        assert_eq!(parse(&twice).unwrap().iter().map(|line| line.part).collect::<Vec<_>>(), [1, 2]);
    }
}
