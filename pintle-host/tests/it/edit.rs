//! Changes of the files of hosts.

use std::{
    fs,
    path::{Path, PathBuf},
};

use pintle_host::config::{
    ConfigEdit, ConfigErrorKind, ConfigFile, Directories, Host, Location, NewServer, Platform,
    ResolvedServer, Scope, Variables, locations,
};

/// A directory that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("pintle-edit-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn location(&self, host: Host) -> Location {
        // Some have files in projects only.
        let directories = Directories::below(Platform::Linux, &self.0).project(self.0.join("project"));
        let mut of_host: Vec<_> =
            locations(&directories).into_iter().filter(|file| file.host == host).collect();
        of_host.sort_by_key(|file| file.scope == Scope::Project);
        of_host.remove(0)
    }

    fn files(&self) -> Vec<String> {
        let files = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name());
        let mut files: Vec<_> = files.map(|name| name.into_string().unwrap()).collect();
        files.sort();
        files
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

fn git() -> NewServer {
    NewServer::program("git", "uvx", ["mcp-server-git", "--repository", "/srv"]).env("A", "1")
}

fn docs() -> NewServer {
    NewServer::remote("docs", "https://e.test/mcp").header("X-Team", "shop")
}

#[test]
fn every_host_reads_what_is_added() {
    let folder = Folder::new("hosts");
    for host in Host::all() {
        let location = folder.location(host);
        let added = ConfigEdit::add(&location, git()).apply().unwrap();
        assert_eq!((added.backup.is_some(), &added.path), (false, &location.path), "{host}");
        let is_remote = ConfigEdit::add(&location, docs()).apply();
        let file = ConfigFile::read(&location.path).unwrap();
        match file.server("git").unwrap().resolve(&Variables::none()).unwrap() {
            ResolvedServer::Stdio(stdio) => {
                assert_eq!(
                    (stdio.command.as_str(), stdio.args.len(), stdio.env.len()),
                    ("uvx", 3, 1),
                    "{host}"
                );
            }
            other => panic!("{host}: {other:?}"),
        }
        match is_remote {
            Ok(edited) => {
                let docs = file.server("docs").unwrap().resolve(&Variables::none()).unwrap();
                let ResolvedServer::Remote(docs) = docs else { panic!("{host}") };
                assert_eq!((docs.url.as_str(), docs.headers.len()), ("https://e.test/mcp", 1), "{host}");
                assert!(edited.backup.is_some());
                ConfigEdit::remove(&location, "docs").apply().unwrap();
            }
            Err(error) => {
                assert!(host == Host::ClaudeDesktop && error.to_string().contains("programs only"), "{error}")
            }
        }
        ConfigEdit::remove(&location, "git").apply().unwrap();
        assert!(ConfigFile::read(&location.path).unwrap().servers.is_empty(), "{host}");
    }
}

#[test]
fn entries_have_the_form_of_the_host() {
    let folder = Folder::new("forms");
    let remote = || NewServer::remote("x", "https://e.test/mcp").token_env("TOKEN");
    let program = || NewServer::program("x", "p", [""; 0]).inherit_env("KEY");
    for (host, server, expected) in [
        (
            Host::ClaudeCode,
            remote(),
            r#"{"type":"http","url":"https://e.test/mcp","headers":{"Authorization":"Bearer ${TOKEN}"}}"#,
        ),
        (
            Host::VsCode,
            remote(),
            r#"{"type":"http","url":"https://e.test/mcp","headers":{"Authorization":"Bearer ${env:TOKEN}"}}"#,
        ),
        (Host::Codex, remote(), r#"{"url":"https://e.test/mcp","bearer_token_env_var":"TOKEN"}"#),
        (
            Host::Windsurf,
            remote(),
            r#"{"serverUrl":"https://e.test/mcp","headers":{"Authorization":"Bearer ${env:TOKEN}"}}"#,
        ),
        (
            Host::OpenCode,
            program(),
            r#"{"type":"local","command":["p"],"environment":{"KEY":"{env:KEY}"},"enabled":true}"#,
        ),
        (Host::Codex, program(), r#"{"command":"p","args":[],"env_vars":["KEY"]}"#),
        (
            Host::CopilotCli,
            program(),
            r#"{"type":"local","command":"p","args":[],"env":{"KEY":"${KEY}"},"tools":["*"]}"#,
        ),
    ] {
        let location = folder.location(host);
        ConfigEdit::set(&location, server).apply().unwrap();
        let file = ConfigFile::read(&location.path).unwrap();
        assert_eq!(file.server("x").unwrap().raw().to_string(), expected, "{host}");
    }
    for (host, server, reason) in [
        (Host::Zed, remote(), "has no variables"),
        (Host::Zed, NewServer::remote("x", "https://${HOST}/mcp"), "has no variables"),
        (
            Host::Cursor,
            NewServer::program("x", "p", [""; 0]).current_dir("/srv"),
            "in a directory of its choice",
        ),
    ] {
        let refused = ConfigEdit::add(&folder.location(host), server).apply().unwrap_err();
        assert!(refused.to_string().contains(reason), "{refused}");
        assert_eq!(refused.kind, ConfigErrorKind::Unsupported);
    }
}

#[test]
fn a_file_that_cannot_be_understood_is_not_touched() {
    let folder = Folder::new("foreign");
    for (text, reason) in [
        ("{ \"mcpServers\": ", "invalid JSON"),
        (r#"{"mcpServers": []}"#, "have to be an object"),
        (r#"{"servers": {"a": {"command": "x"}}}"#, "does not have the format of Cursor"),
        (r#"{"git": {"command": "x"}}"#, "does not have the format of Cursor"),
        (r#"{"mcpServers": {"git": {"command": "x"}}}"#, "already"),
        ("[]", "has to be an object"),
    ] {
        let location = folder.location(Host::Cursor);
        fs::create_dir_all(location.path.parent().unwrap()).unwrap();
        fs::write(&location.path, text).unwrap();
        let refused = ConfigEdit::add(&location, git()).apply().unwrap_err();
        assert!(refused.to_string().contains(reason), "{refused}");
        assert_eq!(fs::read_to_string(&location.path).unwrap(), text);
        assert_eq!(fs::read_dir(location.path.parent().unwrap()).unwrap().count(), 1);
    }
    let absent = ConfigEdit::remove(&folder.location(Host::VsCode), "git").apply().unwrap_err();
    assert_eq!(absent.kind, ConfigErrorKind::NotConfigured);
}

#[cfg(unix)]
#[test]
fn links_and_permissions_are_kept_and_nothing_is_left() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let folder = Folder::new("links");
    let location = folder.location(Host::ClaudeCode);
    let real = folder.0.join("dotfiles.json");
    let text = "{ \"mcpServers\": {} } // mine\n";
    fs::write(&real, text).unwrap();
    fs::set_permissions(&real, PermissionsExt::from_mode(0o640)).unwrap();
    symlink(&real, &location.path).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;

    let preview = ConfigEdit::add(&location, git()).preview().unwrap();
    assert_eq!(preview.before.as_deref(), Some(text));
    assert_eq!(fs::read_to_string(&real).unwrap(), text);
    let edited = ConfigEdit::add(&location, git()).apply().unwrap();
    assert!(fs::symlink_metadata(&location.path).unwrap().is_symlink());
    assert_eq!(fs::canonicalize(&real).unwrap(), edited.path);
    assert_eq!(fs::read_to_string(&real).unwrap(), preview.after);
    let backup = edited.backup.unwrap();
    assert_eq!(fs::read_to_string(&backup).unwrap(), text);
    assert_eq!((mode(&real), mode(&backup)), (0o640, 0o640));
    assert_eq!(folder.files(), [".claude.json", "dotfiles.json", "dotfiles.json.pintle.bak"]);

    // A backup that is a link would lead elsewhere.
    fs::remove_file(&backup).unwrap();
    fs::write(folder.0.join("other"), "other").unwrap();
    symlink(folder.0.join("other"), &backup).unwrap();
    ConfigEdit::remove(&location, "git").apply().unwrap();
    assert_eq!(fs::read_to_string(folder.0.join("other")).unwrap(), "other");

    // A new file of the user is theirs only, one of a project is for all.
    let cursor = folder.location(Host::Cursor);
    ConfigEdit::add(&cursor, git()).apply().unwrap();
    assert_eq!(mode(&cursor.path), 0o600);
    let roo = folder.location(Host::RooCode);
    ConfigEdit::add(&roo, git()).apply().unwrap();
    assert_eq!(mode(&roo.path), 0o644);

    fs::remove_file(&real).unwrap();
    let nowhere = ConfigEdit::add(&location, git()).apply().unwrap_err();
    assert!(nowhere.to_string().contains("leads nowhere"), "{nowhere}");
}

#[test]
fn changes_at_the_same_time_are_all_kept() {
    let folder = Folder::new("concurrent");
    let location = folder.location(Host::ClaudeCode);
    std::thread::scope(|scope| {
        for number in 0..6 {
            let location = &location;
            scope.spawn(move || {
                let server = NewServer::program(format!("server-{number}"), "x", [""; 0]);
                ConfigEdit::add(location, server).apply().unwrap();
            });
        }
    });
    assert_eq!(ConfigFile::read(&location.path).unwrap().servers.len(), 6);
    assert_eq!(folder.files(), [".claude.json", ".claude.json.pintle.bak"]);
}
