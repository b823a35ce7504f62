use std::{
    fs,
    os::unix::fs::symlink,
    path::PathBuf,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::{Duration, SystemTime},
};

use pintle_types::schema::ResourceBody;
use rustix::fs::{CWD, Mode, mkfifoat};

use super::*;

/// A directory `served`, next to things that are not to be seen.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name =
            format!("pintle-directory-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let place = Self(std::env::temp_dir().join(name));
        fs::create_dir_all(place.0.join("served")).unwrap();
        fs::create_dir_all(place.0.join("outside")).unwrap();
        fs::write(place.0.join("outside/secret.txt"), "secret").unwrap();
        fs::write(place.0.join("served-too.txt"), "secret").unwrap();
        place
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> &Self {
        let path = self.0.join("served").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
        self
    }

    fn link(&self, name: &str, target: impl AsRef<Path>) -> &Self {
        symlink(target, self.0.join("served").join(name)).unwrap();
        self
    }

    fn directory(&self) -> Directory {
        Directory::new(self.0.join("served")).unwrap().prefix("docs://").unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // A leftover in the temporary directory fails no test.
        let _leftover = fs::remove_dir_all(&self.0);
    }
}

fn uris(directory: &Directory) -> Vec<String> {
    directory.resources().unwrap().into_iter().map(|resource| resource.uri).collect()
}

fn text(directory: &Directory, uri: &str) -> Option<String> {
    match directory.read(uri) {
        Ok(ResourceContents { body: ResourceBody::Text(text), .. }) => Some(text),
        Ok(other) => panic!("{other:?}"),
        Err(ReadError::NotFound { .. }) => None,
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn every_name_is_listed_and_read() {
    let place = Place::new();
    let names = [
        "a b.txt",
        "a#b.txt",
        "a?b.txt",
        "a%b.txt",
        "a%2Fb.txt",
        "a\\b",
        "a:b@c",
        "été.md",
        "日本/語.md",
        "...",
    ];
    for name in names {
        place.write(name, name);
    }
    let directory = place.directory().with_hidden();
    let listed = directory.resources().unwrap();
    assert_eq!(listed.len(), names.len());
    for resource in listed {
        assert_eq!(
            text(&directory, &resource.uri).as_deref(),
            Some(resource.name.as_str()),
            "{}",
            resource.uri
        );
    }
    assert_eq!(text(&directory, "docs://a b.txt").as_deref(), Some("a b.txt"));
    assert_eq!(text(&directory, "DOCS://été.md").as_deref(), Some("été.md"));
    assert_eq!(text(&directory, "docs://a#b.txt"), None);
    assert_eq!(text(&directory, "docs://a?b.txt"), None);
}

#[test]
fn a_name_that_is_not_utf_8() {
    let place = Place::new();
    let name: OsString = std::os::unix::ffi::OsStringExt::from_vec(b"caf\xE9.txt".to_vec());
    fs::write(place.0.join("served").join(name), "milk").unwrap();
    let directory = place.directory();
    assert_eq!(uris(&directory), ["docs://caf%E9.txt"]);
    assert_eq!(text(&directory, "docs://caf%e9.txt").as_deref(), Some("milk"));
}

#[test]
fn what_a_resource_says() {
    let place = Place::new();
    place.write("a/b.json", "{}");
    let file = fs::File::options().write(true).open(place.0.join("served/a/b.json")).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(951_782_400)).unwrap();
    assert_eq!(
        serde_json::to_string(&place.directory().resources().unwrap()).unwrap(),
        r#"[{"uri":"docs://a/b.json","name":"a/b.json","mimeType":"application/json","size":2,"annotations":{"lastModified":"2000-02-29T00:00:00Z"}}]"#
    );
}

#[test]
fn text_or_bytes() {
    let place = Place::new();
    place
        .write("a.md", "milk")
        .write("b.md", b"\xFF\xFE")
        .write("c.png", "text")
        .write("d", "text")
        .write("e", b"\x00\x01")
        .write("f.txt", "");
    let directory = place.directory();
    for (uri, read) in [
        ("docs://a.md", r#"{"uri":"docs://a.md","mimeType":"text/markdown","text":"milk"}"#),
        ("docs://b.md", r#"{"uri":"docs://b.md","mimeType":"text/markdown","blob":"//4="}"#),
        ("docs://c.png", r#"{"uri":"docs://c.png","mimeType":"image/png","blob":"dGV4dA=="}"#),
        ("docs://d", r#"{"uri":"docs://d","mimeType":"text/plain","text":"text"}"#),
        ("docs://e", r#"{"uri":"docs://e","mimeType":"application/octet-stream","blob":"AAE="}"#),
        ("docs://f.txt", r#"{"uri":"docs://f.txt","mimeType":"text/plain","text":""}"#),
    ] {
        assert_eq!(serde_json::to_string(&directory.read(uri).unwrap()).unwrap(), read);
    }
}

#[test]
fn nothing_outside_is_read() {
    let place = Place::new();
    place.write("a/b.txt", "b").link("etc", "/etc").link("up", "..").link("secret", "../outside/secret.txt");
    place.link("a/far", "../../outside").link("self", "self").link("there", place.0.join("served/a"));
    let secret = place.0.join("outside/secret.txt");
    for directory in [place.directory(), place.directory().follow_links(), place.directory().with_hidden()] {
        for uri in [
            "docs://../outside/secret.txt",
            "docs://..%2foutside%2fsecret.txt",
            "docs://%2e%2e/outside/secret.txt",
            "docs://%2E%2e%2Foutside/secret.txt",
            "docs://%252e%252e/outside/secret.txt",
            "docs://a/../../outside/secret.txt",
            "docs://a/../a/b.txt",
            "docs://./a/b.txt",
            "docs://a//b.txt",
            "docs:///a/b.txt",
            "docs://a/b.txt/",
            "docs://a/b.txt/c",
            "docs://a/b.txt%00",
            "docs://a/b.txt%00.md",
            "docs://..\\outside\\secret.txt",
            "docs://etc/passwd",
            "docs://up/outside/secret.txt",
            "docs://secret",
            "docs://a/far/secret.txt",
            "docs://self",
            "docs://there/b.txt",
            "docs://a",
            "docs://",
            "docs:",
            "docs://%",
            "docs://none",
            "other://a/b.txt",
            "file:///etc/passwd",
            "",
            &format!("docs://{}", secret.display()),
            &format!("docs://{}", "a/".repeat(100)),
            &format!("docs://{}", "a".repeat(300)),
            &format!("docs://{}", "a".repeat(10_000)),
        ] {
            assert_eq!(text(&directory, uri), None, "{uri}");
        }
        assert_eq!(text(&directory, "docs://a/b.txt").as_deref(), Some("b"));
        assert_eq!(uris(&directory), ["docs://a/b.txt"]);
    }
    let file = Directory::new(place.0.join("served")).unwrap();
    assert_eq!(text(&file, &uri_from_path(place.0.join("served-too.txt")).unwrap()), None);
    assert_eq!(text(&file, &uri_from_path(&secret).unwrap()), None);
}

#[test]
fn links_that_stay_are_followed_if_asked() {
    let place = Place::new();
    place.write("a/b.txt", "b").write(".hidden/c.txt", "c").write("d.txt", "d");
    place
        .link("file", "a/b.txt")
        .link("dir", "a")
        .link("a/back", "..")
        .link("a/d", "../d.txt")
        .link("dead", "none");
    place.link("shown", ".hidden/c.txt").link("round", "a/../a/./b.txt");
    assert_eq!(uris(&place.directory()), ["docs://a/b.txt", "docs://d.txt"]);
    assert_eq!(text(&place.directory(), "docs://file"), None);
    assert_eq!(text(&place.directory(), "docs://dir/b.txt"), None);

    let directory = place.directory().follow_links();
    for (uri, read) in [
        ("docs://file", Some("b")),
        ("docs://dir/b.txt", Some("b")),
        ("docs://a/d", Some("d")),
        ("docs://round", Some("b")),
        ("docs://a/back/a/back/d.txt", Some("d")),
        ("docs://shown", None),
        ("docs://dead", None),
    ] {
        assert_eq!(text(&directory, uri).as_deref(), read, "{uri}");
    }
    let all = ["docs://a/b.txt", "docs://a/d", "docs://d.txt", "docs://file", "docs://round"];
    assert_eq!(uris(&directory), all);
    assert_eq!(text(&directory.with_hidden(), "docs://shown").as_deref(), Some("c"));
}

#[test]
fn hidden_and_nested_files_are_a_choice() {
    let place = Place::new();
    place.write("a", "a").write("b/c", "c").write(".d", "d").write(".e/f", "f");
    for (directory, listed) in [
        (place.directory(), vec!["docs://a", "docs://b/c"]),
        (place.directory().flat(), vec!["docs://a"]),
        (place.directory().with_hidden(), vec!["docs://.d", "docs://.e/f", "docs://a", "docs://b/c"]),
        (place.directory().with_hidden().flat(), vec!["docs://.d", "docs://a"]),
    ] {
        assert_eq!(uris(&directory), listed);
        for uri in ["docs://a", "docs://b/c", "docs://.d", "docs://.e/f", "docs://%2ed"] {
            let served = listed.contains(&uri.replace("%2e", ".").as_str());
            assert_eq!(text(&directory, uri).is_some(), served, "{uri}");
        }
    }
}

#[test]
fn special_files_are_never_opened() {
    let place = Place::new();
    mkfifoat(CWD, place.0.join("served/pipe"), Mode::RWXU).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(place.0.join("served/socket")).unwrap();
    place.link("null", "/dev/null").link("to-pipe", "pipe");
    for directory in [place.directory(), place.directory().follow_links()] {
        for uri in ["docs://pipe", "docs://socket", "docs://null", "docs://to-pipe"] {
            assert_eq!(text(&directory, uri), None, "{uri}");
        }
        assert!(uris(&directory).is_empty());
    }
}

#[test]
fn a_large_file_is_refused() {
    let place = Place::new();
    place.write("a", "12345").write("b", "1234");
    let directory = place.directory().max_file_size(4);
    assert_eq!(
        directory.read("docs://a").unwrap_err().to_string(),
        "resource `docs://a` has 5 bytes; the limit is 4"
    );
    assert_eq!(text(&directory, "docs://b").as_deref(), Some("1234"));
    fs::File::create(place.0.join("served/c")).unwrap().set_len(8 * 1024 * 1024 + 1).unwrap();
    assert!(matches!(place.directory().read("docs://c"), Err(ReadError::TooLarge { size: 8_388_609, .. })));
}

#[test]
fn many_files() {
    let place = Place::new();
    for i in 0..10_001 {
        place.write(&format!("{i:05}"), "");
    }
    let listed = uris(&place.directory());
    assert_eq!(listed.len(), 10_000);
    assert!(listed.is_sorted());
    assert_eq!(uris(&place.directory().max_files(3)), ["docs://00000", "docs://00001", "docs://00002"]);
    assert!(uris(&place.directory().max_files(0)).is_empty());
    assert_eq!(text(&place.directory(), "docs://10000").as_deref(), Some(""));
}

#[test]
fn prefixes() {
    let place = Place::new();
    place.write("a", "a");
    let plain = Directory::new(place.0.join("served")).unwrap();
    let uri = uri_from_path(place.0.canonicalize().unwrap().join("served/a")).unwrap();
    assert_eq!(uris(&plain), [uri.as_str()]);
    assert!(text(&plain, &uri).is_some());
    assert!(text(&plain, &uri.replace("file://", "FILE://localhost")).is_some());
    for (prefix, uri) in [
        ("docs://", "docs://a"),
        ("docs://x", "docs://x/a"),
        ("Docs://x y/", "docs://x%20y/a"),
        ("docs:", "docs:a"),
        ("https://example.com/files", "https://example.com/files/a"),
    ] {
        let directory = plain.clone().prefix(prefix).unwrap();
        assert_eq!(uris(&directory), [uri]);
        assert!(directory.covers(uri) && text(&directory, uri).is_some());
        assert!(!directory.covers(prefix) && !directory.covers("docsx://a"));
        let template = crate::uri::Template::parse(&directory.uri_template()).unwrap();
        assert_eq!(template.matches(uri).unwrap().get("path"), Some("a"));
    }
    for prefix in ["", "docs", "://", "docs://?", "docs://#x", "docs://%"] {
        assert!(plain.clone().prefix(prefix).is_err(), "{prefix}");
    }
    assert!(Directory::new(place.0.join("none")).is_err());
    assert!(Directory::new(place.0.join("served/a")).is_err());
}

#[test]
fn a_renamed_directory_is_still_the_one() {
    let place = Place::new();
    place.write("a", "a");
    let directory = place.directory();
    fs::rename(place.0.join("served"), place.0.join("moved")).unwrap();
    symlink("outside", place.0.join("served")).unwrap();
    assert_eq!(text(&directory, "docs://a").as_deref(), Some("a"));
    assert_eq!(text(&directory, "docs://secret.txt"), None);
}

#[test]
fn nobody_wins_a_race() {
    let place = Place::new();
    place.write("real/secret.txt", "public").link("trap", "../outside");
    let served = place.0.join("served");
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                for name in ["real", "trap"] {
                    fs::rename(served.join(name), served.join("way")).unwrap();
                    fs::rename(served.join("way"), served.join(name)).unwrap();
                }
            }
        });
        for directory in [place.directory(), place.directory().follow_links()] {
            for _ in 0..2_000 {
                assert_ne!(text(&directory, "docs://way/secret.txt").as_deref(), Some("secret"));
            }
            for _ in 0..100 {
                assert!(!uris(&directory).iter().any(|uri| uri.contains("trap/")));
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn the_portable_way_serves_the_same() {
    let place = Place::new();
    place.write("a/b.txt", "b").write(".hidden/c", "c").write("d", "d").write(".e", "e");
    place
        .link("etc", "/etc")
        .link("far", "../outside")
        .link("near", "a")
        .link("dead", "none")
        .link("a/up", "..");
    place.link("shown", ".hidden/c").link("self", "self");
    mkfifoat(CWD, place.0.join("served/pipe"), Mode::RWXU).unwrap();
    let path = place.0.join("served").canonicalize().unwrap();
    let (one, other) =
        (unix::DirectoryHandle::open(&path).unwrap(), portable::DirectoryPath::open(&path).unwrap());
    for bits in 0..8 {
        let rules = DirectoryRules {
            recursive: bits & 1 > 0,
            hidden: bits & 2 > 0,
            links: bits & 4 > 0,
            max_files: 3,
        };
        let names = |(entries, more): (Vec<FileEntry>, bool)| -> (Vec<_>, bool) {
            (entries.into_iter().map(|entry| (entry.names, entry.size)).collect(), more)
        };
        assert_eq!(names(one.list(&rules).unwrap()), names(other.list(&rules).unwrap()), "{rules:?}");
        for path in [
            "a/b.txt",
            "a",
            "d",
            "d/x",
            "near/b.txt",
            "far/secret.txt",
            "etc/passwd",
            "dead",
            "shown",
            "self",
            "pipe",
            "a/up/d",
            "none",
            "none/none",
        ] {
            let path: Vec<_> = path.split('/').map(OsString::from).collect();
            let read = |found: io::Result<(fs::File, u64)>| found.map(|(_, size)| size).map_err(|e| e.kind());
            let found = read(one.file(&path, &rules));
            assert_eq!(found.err().unwrap_or(io::ErrorKind::NotFound), io::ErrorKind::NotFound);
            assert_eq!(found.ok(), read(other.file(&path, &rules)).ok(), "{path:?} {rules:?}");
        }
    }
    assert!(portable::DirectoryPath::open(&path.join("d")).is_err());
}

#[test]
fn names_that_windows_takes_for_something_else() {
    for name in ["a:b", "a\\b", "NUL", "nul.txt", "Con", "com1", "LPT9.log", "a.", "a ", "a*", "a\n"] {
        assert!(!portable::is_plain(name), "{name}");
    }
    for name in ["a", "a b", ".a", "null", "com", "com10", "é"] {
        assert!(portable::is_plain(name), "{name}");
    }
}
