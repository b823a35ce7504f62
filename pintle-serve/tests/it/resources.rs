use std::{collections::BTreeMap, fs, path::Path};

use pintle::{Client, Connection, Server};
use pintle_serve::{ResourceEntry, ServedFolders, ServedResources};

use super::commands::Folder;

fn read(file: &str, folder: &Path) -> Result<ServedResources, String> {
    let entries: BTreeMap<String, ResourceEntry> = toml::from_str(file).unwrap();
    ServedResources::new(&entries, folder).map_err(|fault| fault.to_string())
}

async fn serve(resources: &ServedResources, folders: &ServedFolders) -> Connection {
    let server = resources.routes().into_iter().fold(Server::new("served", "1"), Server::resource);
    let server = resources.templates().into_iter().fold(server, Server::template);
    folders.replace(resources.folders());
    let server = server.source(folders.clone());
    Client::new("test", "1").connect(server.in_process().unwrap()).await.unwrap()
}

async fn contents(client: &Connection, uri: &str) -> String {
    let got = client.read_resource(uri).await;
    got.map_or_else(|error| error.to_string(), |got| serde_json::to_string(&got.contents).unwrap())
}

#[tokio::test]
async fn texts_files_folders_and_commands_are_resources() {
    let folder = Folder::new();
    fs::write(folder.0.join("a.md"), "# A").unwrap();
    fs::create_dir(folder.0.join("docs")).unwrap();
    fs::write(folder.0.join("docs/b.txt"), "B").unwrap();
    let file = r#"
        [hello]
        uri = "note://hello"
        text = "Hello"
        [readme]
        uri = "note://readme"
        title = "Read me"
        file = "a.md"
        [docs]
        uri = "docs://"
        folder = "docs"
        [log]
        uri = "log://{unit}"
        mime_type = "text/x-log"
        command = ["echo", "log of {unit}"]
        arguments = { unit = { type = "string", pattern = "^[a-z]+$" } }
    "#;
    let resources = read(file, &folder.0).unwrap();
    let folders = ServedFolders::default();
    let client = serve(&resources, &folders).await;
    let listed: Vec<_> = client.resources().await.unwrap().into_iter().map(|one| one.uri).collect();
    assert_eq!(listed, ["note://hello", "note://readme", "docs://b.txt"]);
    assert_eq!(resources.files().map(|(uri, _)| uri).collect::<Vec<_>>(), ["note://readme"]);
    let text = |uri: &str, mime: &str, text: &str| {
        format!(r##"[{{"uri":"{uri}","mimeType":"{mime}","text":"{text}"}}]"##)
    };
    assert_eq!(contents(&client, "note://hello").await, r#"[{"uri":"note://hello","text":"Hello"}]"#);
    assert_eq!(contents(&client, "note://readme").await, text("note://readme", "text/markdown", "# A"));
    assert_eq!(contents(&client, "docs://b.txt").await, text("docs://b.txt", "text/plain", "B"));
    assert_eq!(contents(&client, "log://web").await, text("log://web", "text/x-log", "log of web\\n"));
    for (uri, reason) in [
        ("log://Web", "^[a-z]+$"),
        ("docs://../a.md", "no such resource"),
        ("docs://none", "no such resource"),
    ] {
        let refused = contents(&client, uri).await;
        assert!(refused.contains(reason), "{uri}: {refused}");
    }

    fs::write(folder.0.join("docs/c.txt"), "C").unwrap();
    assert_eq!(folders.resources().len(), 2, "a folder is listed anew");
    folders.replace(&[]);
    assert!(contents(&client, "docs://b.txt").await.contains("no such resource"), "it is no folder any more");
}

#[tokio::test]
async fn a_command_that_fails_is_an_error_with_its_reason() {
    let file = "[a]\nuri = \"a://a\"\ncommand = [\"sh\", \"-c\", \"echo gone >&2; exit 3\"]";
    let client = serve(&read(file, ".".as_ref()).unwrap(), &ServedFolders::default()).await;
    let failed = contents(&client, "a://a").await;
    assert!(failed.contains("gone") && failed.contains('3'), "{failed}");
}

#[test]
fn what_is_no_resource_is_refused_with_what_to_write() {
    for (entry, expected) in [
        ("uri = \"a://a\"", "exactly one of `text`"),
        ("uri = \"a://a\"\ntext = \"a\"\nfile = \"b\"", "exactly one of"),
        ("uri = \"a://a\"\nfolder = \".\"\nfile = \"b\"", "keep one"),
        ("uri = \"a://a\"\nfile = \"none\"", "cannot be read"),
        ("uri = \"a://a\"\nfile = \".\"", "cannot be read"),
        ("uri = \"a://a\"\nfolder = \"none\"", "the folder"),
        ("uri = \"a\"\nfolder = \".\"", "not a valid URI prefix"),
        ("uri = \"a://{b}\"\ntext = \"a\"", "has variables, which are for a `command`"),
        ("uri = \"a://{b}\"\ncommand = [\"echo\"]", "argument `b` has no place"),
        ("uri = \"a://a\"\ncommand = [\"echo\"]\narguments = { b = \"string\" }", "`b` is no variable"),
    ] {
        let fault = read(&format!("[r]\n{entry}"), ".".as_ref()).unwrap_err();
        assert!(fault.starts_with("resource `r`: ") && fault.contains(expected), "{entry}: {fault}");
    }
}
