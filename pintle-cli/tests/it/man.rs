//! Manual pages.

use std::{fs, process::Command};

use crate::support::{snapshot::assert_file, state_directory, typed};

#[test]
fn every_verb_has_a_page() {
    let folder = state_directory().join("man1");
    let words = ["man", folder.to_str().unwrap(), "--json"];
    let done = typed(&words);
    assert_eq!(done.code, Some(0), "{done:?}");
    let json: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    let files: Vec<_> = json["files"].as_array().unwrap().iter().map(|file| file.as_str().unwrap()).collect();
    for file in ["pintle.1", "pintle-call.1", "pintle-repl.1", "pintle-tour.1"] {
        assert!(files.contains(&file), "{files:?}");
    }
    assert_file(&fs::read_to_string(folder.join("pintle-ping.1")).unwrap(), "pintle-ping.1");
    // Where there is a formatter, it has nothing to complain about.
    for file in &files {
        let page = folder.join(file);
        let mut man = Command::new("man");
        man.args(["--warnings=all", "--local-file"])
            .arg(&page)
            .env("LC_ALL", "C.UTF-8")
            .env("MANWIDTH", "100");
        let Ok(formatted) = man.output() else { break };
        let shown = String::from_utf8_lossy(&formatted.stdout);
        assert!(shown.contains("NAME") && shown.contains("SYNOPSIS"), "{file}: {formatted:?}");
        assert!(formatted.stderr.is_empty(), "{file}: {}", String::from_utf8_lossy(&formatted.stderr));
    }
    fs::remove_dir_all(&folder).unwrap();
    let refused = typed(&["man", "/dev/null/x"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("cannot be written"), "{refused:?}");
}
