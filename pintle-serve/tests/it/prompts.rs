use std::{collections::BTreeMap, fs, path::Path};

use pintle::{Client, Connection, Server};
use pintle_serve::{PromptEntry, prompt_routes};
use serde_json::json;

use super::commands::Folder;

fn load(file: &str, folder: &Path) -> Result<BTreeMap<String, PromptEntry>, String> {
    let entries: BTreeMap<String, PromptEntry> = toml::from_str(file).unwrap();
    entries.into_iter().map(|(name, entry)| Ok((name, entry.load(folder)?))).collect()
}

async fn serve(file: &str, folder: &Path) -> Connection {
    let routes = prompt_routes(&load(file, folder).unwrap()).unwrap();
    let server = routes.into_iter().fold(Server::new("served", "1"), Server::prompt);
    Client::new("test", "1").connect(server.in_process().unwrap()).await.unwrap()
}

async fn text(client: &Connection, prompt: &str, arguments: serde_json::Value) -> String {
    let got = client.get_prompt(prompt, arguments).await;
    got.map_or_else(|error| error.to_string(), |got| serde_json::to_string(&got.messages).unwrap())
}

#[tokio::test]
async fn a_text_has_places_for_its_arguments() {
    let file = r#"
        [review]
        description = "Reviews a change."
        text = "Review {diff} for {focus}, as {{json}}.{note? There is a note.}"
        arguments.diff = "string"
        arguments.focus = { type = "string", enum = ["speed", "style"], default = "style", description = "What counts." }
        arguments.note = "string?"
    "#;
    let client = serve(file, ".".as_ref()).await;
    let listed = &client.prompts().await.unwrap()[0];
    let arguments = json!(listed.arguments);
    assert_eq!(arguments[0], json!({"name": "diff", "required": true}));
    assert_eq!(arguments[1], json!({"name": "focus", "description": "What counts."}));
    let read = text(&client, "review", json!({"diff": "{focus} $(id)"})).await;
    assert!(read.contains("Review {focus} $(id) for style, as {json}.\""), "{read}");
    let noted = text(&client, "review", json!({"diff": "x", "focus": "speed", "note": "y"})).await;
    assert!(noted.contains("for speed, as {json}. There is a note."), "{noted}");
    assert!(text(&client, "review", json!({})).await.contains("diff"), "a required one is missing");
    assert!(text(&client, "review", json!({"diff": "x", "focus": "sped"})).await.contains("`speed`"));
}

#[tokio::test]
async fn a_file_has_a_front_matter() {
    let folder = Folder::new();
    let markdown =
        "---\ntitle: A review\ndescription: Reviews.\narguments:\n  diff: string\n---\n# Review\n{diff}\n";
    fs::write(folder.0.join("review.md"), markdown).unwrap();
    fs::write(folder.0.join("plain.md"), "No front matter.\n").unwrap();
    let client = serve("[review]\nfile = \"review.md\"\n[plain]\nfile = \"plain.md\"", &folder.0).await;
    let listed = client.prompts().await.unwrap();
    assert_eq!(listed[1].title.as_deref(), Some("A review"));
    assert!(text(&client, "review", json!({"diff": "+ a"})).await.contains("# Review\\n+ a\\n"));
    assert!(text(&client, "plain", json!({})).await.contains("No front matter."));
}

#[test]
fn what_is_no_prompt_is_refused_with_what_to_write() {
    let folder = Folder::new();
    fs::write(folder.0.join("odd.md"), "---\narguments: 1\n---\n").unwrap();
    fs::write(folder.0.join("twice.md"), "---\ntext: a\n---\nb\n").unwrap();
    fs::write(folder.0.join("large.md"), "x".repeat(300_000)).unwrap();
    for (entry, expected) in [
        ("", "add `text"),
        ("text = \"{a}\"", "add `a = \"string\"` to `arguments`"),
        ("text = \"a\"\narguments = { a = \"string\" }", "argument `a` has no place"),
        ("text = \"{a}\"\narguments = { a = \"integer\" }", "arguments of prompts are texts"),
        ("text = \"a\"\nfile = \"odd.md\"", "remove one of them"),
        ("file = \"none.md\"", "none.md` cannot be read"),
        ("file = \"odd.md\"", "the front matter is wrong"),
        ("file = \"twice.md\"", "remove `text` and `file`"),
        ("file = \"large.md\"", "shorten it"),
    ] {
        let loaded = load(&format!("[a]\n{entry}"), &folder.0);
        let fault = loaded
            .and_then(|entries| prompt_routes(&entries).map_err(|fault| fault.to_string()))
            .unwrap_err();
        assert!(fault.contains(expected), "{entry}: {fault}");
    }
}
