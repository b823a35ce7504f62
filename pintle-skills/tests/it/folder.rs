//! A folder of skills, as a server offers it.

use std::{fs, path::PathBuf};

use pintle::{Client, Error, Server, directory::Directory, types::RawObject};
use pintle_skills::{SkillError, SkillReader, Skills};
use serde_json::{Value, json};

use crate::support::eras::{R4, R5};

/// A folder that is removed with this.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("pintle-skills-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn with(self, file: &str, contents: impl AsRef<[u8]>) -> Self {
        let path = self.0.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
        self
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn skill(name: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name}.\nmetadata:\n  version: 1.0\n---\n\nDo it.\n")
}

async fn ask(server: &Server, revision: &str, method: &'static str, params: Value) -> Result<Value, Error> {
    let client = Client::new("c", "1").revisions([revision.parse().unwrap()]);
    let connection = client.connect(server.in_process().unwrap()).await.unwrap();
    let result = connection.call_raw(method, RawObject::from_serialize(&params).unwrap()).await;
    connection.close().await;
    Ok(serde_json::from_str(result?.as_str()).unwrap())
}

fn code(result: Result<Value, Error>) -> i32 {
    match result {
        Err(Error::Rpc(error)) => error.code.0,
        other => panic!("{other:?}"),
    }
}

/// Every file is listed once with its digest, those of a skill inside of another one too; other files are not served.
#[tokio::test]
async fn a_folder_is_listed_with_the_digests_of_all_files() {
    let folder = Folder::new("listed")
        .with("pdf/SKILL.md", skill("pdf"))
        .with("pdf/FORMS.md", "forms\r\n")
        .with("pdf/bin/data", [0, 159, 146, 150])
        .with("pdf/inner/fill/SKILL.md", skill("fill"))
        .with("README.md", "not a skill")
        .with("pdf/.secret", "hidden");
    let server = Server::new("s", "1").with(Skills::new(&folder.0).unwrap());
    server.check().unwrap();
    // A client declares nothing.
    let listed = ask(&server, R5, "skills/list", json!({})).await.unwrap();
    assert_eq!((&listed["ttlMs"], &listed["cacheScope"]), (&json!(0), &json!("private")));
    assert_eq!(listed["resultType"], "complete");
    let skills = listed["skills"].as_array().unwrap();
    let uris = |skill: &Value| -> Vec<String> {
        let files = skill["resources"].as_array().unwrap();
        files.iter().map(|file| file["uri"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(skills[0]["uri"], "skill://pdf/SKILL.md");
    assert_eq!(
        skills[0]["frontmatter"],
        json!({"name": "pdf", "description": "Does pdf.", "metadata": {"version": 1.0}})
    );
    assert_eq!(
        uris(&skills[0]),
        [
            "skill://pdf/FORMS.md",
            "skill://pdf/SKILL.md",
            "skill://pdf/bin/data",
            "skill://pdf/inner/fill/SKILL.md"
        ]
    );
    assert_eq!((skills.len(), uris(&skills[1])), (2, vec!["skill://pdf/inner/fill/SKILL.md".to_owned()]));
    // `printf 'forms\r\n' | sha256sum`
    let forms = &skills[0]["resources"][0];
    assert_eq!(forms["size"], 7);
    assert_eq!(forms["digest"], "sha256:6547da76fd08965c45d044e2abdae7ac730b6fc486578c39fb84cae244db9c20");
    let got = ask(&server, R5, "skills/get", json!({"uri": "skill://pdf/SKILL.md"})).await.unwrap();
    assert_eq!(got["skill"], skills[0]);
    assert_eq!(code(ask(&server, R5, "skills/get", json!({"uri": "skill://no/SKILL.md"})).await), -32602);
    // Neither what is outside of a skill, nor what is hidden.
    for uri in ["skill://README.md", "skill://pdf/.secret", "skill://pdf/../README.md"] {
        assert_eq!(code(ask(&server, R5, "resources/read", json!({"uri": uri})).await), -32602, "{uri}");
    }
    let read = ask(&server, R4, "resources/read", json!({"uri": "skill://pdf/SKILL.md"})).await.unwrap();
    assert_eq!(read["contents"][0]["text"], skill("pdf"));
    assert_eq!(read["contents"][0]["mimeType"], "text/markdown");
}

#[tokio::test]
async fn directories_are_listed_if_that_is_declared() {
    let files = [("a/one/SKILL.md", &*skill("one")), ("a/one/x/y.txt", "y"), ("a/one/x/z.md", "z")];
    let plain = Server::new("s", "1").with(Skills::from_files("skill://", files).unwrap());
    assert_eq!(
        code(ask(&plain, R5, "resources/directory/read", json!({"uri": "skill://a/one"})).await),
        -32601
    );
    let skills = Skills::from_files("skill://", files).unwrap().list_directories();
    let server = Server::new("s", "1").with(skills);
    let discovered = ask(&server, R5, "server/discover", json!({})).await.unwrap();
    let declared = &discovered["capabilities"]["extensions"]["io.modelcontextprotocol/skills"];
    assert_eq!(*declared, json!({"directoryRead": true}));
    let read = ask(&server, R5, "resources/directory/read", json!({"uri": "skill://a/one"})).await.unwrap();
    assert_eq!((&read["ttlMs"], read["resources"].as_array().unwrap().len()), (&Value::Null, 2));
    assert_eq!(read["resources"][1]["uri"], "skill://a/one/x");
    assert_eq!(read["resources"][1]["mimeType"], "inode/directory");
    let below =
        ask(&server, R5, "resources/directory/read", json!({"uri": "skill://a/one/x"})).await.unwrap();
    assert_eq!(below["resources"][0]["uri"], "skill://a/one/x/y.txt");
    for uri in ["skill://a", "skill://a/one/x/y.txt", "skill://a/one/"] {
        let refused = ask(&server, R5, "resources/directory/read", json!({"uri": uri})).await;
        assert_eq!(code(refused), -32602, "{uri}");
    }
}

/// The text is for clients without sessions; others are offered it if the server says so, without members that they do not know.
#[tokio::test]
async fn sessions_have_skills_if_the_server_says_so() {
    let files = [("one/SKILL.md", &*skill("one"))];
    let server = Server::new("s", "1").with(Skills::from_files("skill://", files).unwrap());
    assert_eq!(code(ask(&server, R4, "skills/list", json!({})).await), -32601);
    let server = Server::new("s", "1").with(Skills::from_files("skill://", files).unwrap().in_sessions());
    let listed = ask(&server, R4, "skills/list", json!({})).await.unwrap();
    assert_eq!(listed["skills"][0]["uri"], "skill://one/SKILL.md");
    for member in ["resultType", "ttlMs", "cacheScope"] {
        assert_eq!(listed[member], Value::Null, "{member}");
    }
}

#[tokio::test]
async fn a_long_list_has_pages() {
    let files: Vec<_> = (0..250).map(|n| (format!("s{n}/SKILL.md"), skill(&format!("s{n}")))).collect();
    let files = files.iter().map(|(path, text)| (path.as_str(), text.as_str()));
    let server = Server::new("s", "1").with(Skills::from_files("skill://", files).unwrap());
    let first = ask(&server, R5, "skills/list", json!({})).await.unwrap();
    assert_eq!(first["skills"].as_array().unwrap().len(), 100);
    assert_eq!(code(ask(&server, R5, "skills/list", json!({"cursor": "%"})).await), -32602);
    let connection = Client::new("c", "1").connect(server.in_process().unwrap()).await.unwrap();
    let all = SkillReader::new(&connection).unwrap().list().await.unwrap();
    let mut names: Vec<_> = all.iter().map(|skill| skill.name().to_owned()).collect();
    names.sort();
    names.dedup();
    assert_eq!((all.len(), names.len()), (250, 250));
}

#[test]
fn what_hosts_would_refuse_is_refused_at_the_start() {
    for (file, text, reason) in [
        ("pdf/SKILL.md", skill("forms"), "another"),
        ("Pdf/SKILL.md", skill("Pdf"), "not the name of a skill"),
        ("a--b/SKILL.md", skill("a--b"), "not the name of a skill"),
        ("pdf/SKILL.md", "---\nname: pdf\n---\n".to_owned(), "description"),
        ("pdf/SKILL.md", "# Pdf".to_owned(), "front matter"),
        ("../pdf/SKILL.md", skill("pdf"), "path"),
    ] {
        let refused = Skills::from_files("skill://", [(file, &*text)]).unwrap_err().to_string();
        assert!(refused.contains(reason) && refused.contains("SKILL.md"), "{file}: {refused}");
    }
    for (name, description) in [("x".repeat(65), "Long.".to_owned()), ("pdf".to_owned(), "x".repeat(1025))] {
        let file = format!("{name}/SKILL.md");
        let text = format!("---\nname: {name}\ndescription: {description}\n---\n");
        assert!(Skills::from_files("skill://", [(&*file, &*text)]).is_err(), "{file}");
    }
    let twice = [("pdf/SKILL.md", &*skill("pdf")), ("pdf/a.md", ""), ("pdf/A.md", "")];
    assert!(Skills::from_files("skill://", twice).unwrap_err().to_string().contains("differ only in case"));
}

/// What was listed is what is read, until the folder is read again.
#[tokio::test]
async fn a_file_that_changes_is_served_as_it_was_listed() {
    let folder = Folder::new("changes").with("pdf/SKILL.md", skill("pdf")).with("pdf/a.txt", "one");
    let skills =
        Skills::from_directory(Directory::new(&folder.0).unwrap().prefix("docs://team").unwrap()).unwrap();
    let server = Server::new("s", "1").with(skills.clone());
    let folder = folder.with("pdf/a.txt", "two!");
    let connection = Client::new("c", "1").connect(server.in_process().unwrap()).await.unwrap();
    let reader = SkillReader::new(&connection).unwrap();
    let old = reader.list().await.unwrap().remove(0);
    assert_eq!(old.uri, "docs://team/pdf/SKILL.md");
    assert_eq!(reader.read_text(&old, "docs://team/pdf/a.txt").await.unwrap(), "one");
    skills.reload().unwrap();
    let stale = reader.read(&old, "docs://team/pdf/a.txt").await;
    assert!(matches!(stale, Err(SkillError::Unverified { .. })), "{stale:?}");
    let new = reader.get(&old.uri).await.unwrap();
    assert_ne!(new.fingerprint(), old.fingerprint());
    assert_eq!(reader.read_text(&new, "docs://team/pdf/a.txt").await.unwrap(), "two!");
    // A folder that is too large, that has no text as its text, or that is broken changes nothing.
    let reloaded = skills.clone().max_bytes(20).reload().unwrap_err();
    assert!(matches!(reloaded, SkillError::TooLarge { .. }), "{reloaded}");
    let folder = folder.with("pdf/SKILL.md", b"---\nname: pdf\ndescription: \xff\n---\n");
    let reloaded = skills.reload().unwrap_err().to_string();
    assert!(reloaded.contains("UTF-8"), "{reloaded}");
    let _folder = folder.with("pdf/SKILL.md", "broken");
    assert!(skills.reload().is_err());
    assert_eq!(reader.list().await.unwrap()[0], new);
}

#[cfg(unix)]
#[test]
fn links_do_not_lead_out_of_the_folder() {
    let folder = Folder::new("links").with("pdf/SKILL.md", skill("pdf"));
    std::os::unix::fs::symlink("/etc/hostname", folder.0.join("pdf/link.txt")).unwrap();
    std::os::unix::fs::symlink("/etc", folder.0.join("pdf/etc")).unwrap();
    let skills = format!("{:?}", Skills::new(&folder.0).unwrap());
    assert!(
        skills.contains("skill://pdf/SKILL.md") && !skills.contains("link.txt") && !skills.contains("etc/")
    );
}
