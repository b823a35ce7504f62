//! `pintle serve`: commands as tools of a file, over standard streams and HTTP.

mod calls;
mod drafts;
mod recipes;
mod workers;

use std::fs;

use pintle::{
    Client,
    client::{Change, Event, http::Http},
    transport::Child,
};
use serde_json::json;

use crate::support::{HttpServing, machine::Machine, pintle, run, typed};

const FILE: &str = r#"
[tools.count]
description = "Counts the lines of a file."
command = ["wc", "-l", "--", "{path}"]
arguments = { path = "string" }
read_only = true

[tools.echo]
description = "Prints a text."
command = "printf %s {text}"
shell = true
arguments = { text = "string", loud = "boolean?" }
"#;

fn served(file: &str, name: &str) -> Machine {
    let machine = Machine::new(name);
    machine.write("tools.toml", file);
    machine
}

#[tokio::test]
async fn tools_of_a_file_are_served_on_standard_streams() {
    let machine = served(&FILE.replace(", loud = \"boolean?\"", ""), "serve-stdio");
    machine.write("three", "1\n2\n3\n");
    let file = machine.path("tools.toml");
    let child = Child::command(env!("CARGO_BIN_EXE_pintle")).args(["serve", file.to_str().unwrap()]);
    let client = Client::new("test", "1").connect(child.spawn().unwrap()).await.unwrap();
    let tools = client.tools().await.unwrap();
    assert_eq!(tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["count", "echo"]);
    assert_eq!(tools[0].annotations.as_ref().unwrap().read_only_hint, Some(true));
    // Commands run in the folder of the file.
    let counted = client.call_tool("count", json!({"path": "three"})).await.unwrap().text();
    assert_eq!(counted, "3 three\n");
    assert_eq!(client.call_tool("echo", json!({"text": "$(id) -x"})).await.unwrap().text(), "$(id) -x");
    client.close().await;
}

#[tokio::test]
async fn tools_and_targets_of_one_file_are_judged_by_its_rules_and_follow_its_changes() {
    let rules = "[[rules]]\ntools = [\"count\", \"demo_*\"]\ndecision = \"allow\"\n";
    let file =
        format!("{}\n[targets.demo]\nserver = \"demo\"\n{rules}", FILE.replace(", loud = \"boolean?\"", ""));
    let machine = served(&file, "serve-http");
    machine.write("three", "1\n2\n3\n");
    let mut command = pintle();
    command.args(["serve", "tools.toml", "--http", "127.0.0.1:0"]).current_dir(machine.path(""));
    let gateway = HttpServing::of(command);
    let client = Client::new("test", "1").connect(Http::new(&gateway.url).unwrap()).await.unwrap();
    let names =
        async || -> Vec<String> { client.tools().await.unwrap().into_iter().map(|tool| tool.name).collect() };
    let before = names().await;
    assert!(before.contains(&"count".to_owned()) && before.contains(&"demo_tide".to_owned()), "{before:?}");
    assert!(!before.contains(&"echo".to_owned()), "no rule allows it: {before:?}");
    assert!(client.call_tool("echo", json!({"text": "a"})).await.is_err());
    let mut changes = client.changes().await.unwrap();
    machine
        .write("tools.toml", &file.replace("tools.count", "tools.lines").replace("\"count\"", "\"lines\""));
    while !names().await.contains(&"lines".to_owned()) {
        changes.next().await.unwrap();
    }
    assert!(!names().await.contains(&"count".to_owned()));
    assert_eq!(client.call_tool("lines", json!({"path": "three"})).await.unwrap().text(), "3 three\n");
}

const YAML: &str = r#"
include: [more/*.toml, "prompts/*.md"]
tools:
  count:
    description: Counts the lines of a file.
    command: [wc, -l, --, "{path}"]
    arguments: { path: string }
prompts:
  hello:
    text: Say hello to {name}.
    arguments: { name: string }
resources:
  notes:
    uri: "note://"
    folder: notes
  today:
    uri: today://now
    file: today.txt
"#;

fn served_yaml(name: &str) -> Machine {
    let machine = Machine::new(name);
    machine.write("tools.yaml", YAML);
    machine.write("more/where.toml", "[tools.where]\ncommand = [\"pwd\"]\n");
    machine.write(
        "prompts/review.md",
        "---\ndescription: Reviews.\narguments: {diff: string}\n---\nReview {diff}\n",
    );
    machine.write("notes/a.txt", "A");
    machine.write("today.txt", "Thursday");
    machine
}

#[tokio::test]
async fn a_file_in_yaml_has_prompts_and_resources_and_includes_others() {
    let machine = served_yaml("serve-yaml");
    let mut command = pintle();
    command.args(["serve", "tools.yaml", "--http", "127.0.0.1:0"]).current_dir(machine.path(""));
    let gateway = HttpServing::of(command);
    let client = Client::new("test", "1").connect(Http::new(&gateway.url).unwrap()).await.unwrap();
    let folder = client.call_tool("where", json!({})).await.unwrap().text();
    assert!(folder.trim_end().ends_with("/more"), "commands run in the folder of their file: {folder}");
    let prompts: Vec<_> = client.prompts().await.unwrap().into_iter().map(|prompt| prompt.name).collect();
    assert_eq!(prompts, ["hello", "review"]);
    let review = client.get_prompt("review", json!({"diff": "+ a"})).await.unwrap();
    assert!(format!("{:?}", review.messages).contains("Review + a"), "{review:?}");

    let uris = async || -> Vec<String> {
        client.resources().await.unwrap().into_iter().map(|one| one.uri).collect()
    };
    assert_eq!(uris().await, ["today://now", "note://a.txt"]);
    client.subscribe("today://now").await.unwrap();
    let mut changes = client.changes().await.unwrap();
    machine.write("notes/b.txt", "B");
    machine.write("today.txt", "Friday, at last");
    let mut is_updated = false;
    while !is_updated || uris().await.len() < 3 {
        let event = changes.next().await.unwrap();
        is_updated |= matches!(event, Event::Changed(Change::Resource(uri)) if &*uri == "today://now");
    }
    let read = client.read_resource("today://now").await.unwrap();
    assert!(format!("{:?}", read.contents).contains("Friday, at last"), "{read:?}");
    machine.write("prompts/review.md", "Review it all.");
    while client.get_prompt("review", json!({})).await.is_err() {
        changes.next().await.unwrap();
    }
}

#[test]
fn a_file_in_yaml_is_checked_with_its_lines() {
    let machine = served_yaml("serve-yaml-check");
    let check = || run(pintle().args(["serve", "tools.yaml", "--check"]).current_dir(machine.path("")));
    assert_eq!(check().stdout, "tools.yaml: 2 tools, 2 prompts, 2 resources, 0 targets and 0 rules\n");
    for (from, to, expected) in [
        ("command: [wc", "comand: [wc", "line 6: unknown field `comand`; did you mean `command`?"),
        ("path: string", "path: strng", "line 4: tool `count`: argument `path`: `strng` is no type"),
        ("notes\n", "none\n", "line 13: resource `notes`: the folder"),
        ("{name}", "{nam}", "line 9: prompt `hello`: `{nam}` is no argument"),
        ("[more/", "[mor/", "`mor/*.toml` of `include`: "),
        ("count:", "where:", "the tool `where` is in another file, too: rename one"),
        ("tools:", "tools: [", "line "),
    ] {
        machine.write("tools.yaml", &YAML.replacen(from, to, 1));
        let printed = check();
        assert!(printed.code == Some(1) && printed.stderr.contains(expected), "{to}: {printed:?}");
    }
}

#[test]
fn a_line_is_a_tool_and_a_dry_run_prints_what_would_run() {
    let greet = "greet(name: string, times: integer = 1) = echo 'Hello {name}' {times}";
    let printed = typed(&["serve", "-e", greet, "--dry-run", "greet", "name=it's me"]);
    assert_eq!((printed.code, &*printed.stdout), (Some(0), "echo 'Hello it'\\''s me' 1\n"), "{printed:?}");
    let json = typed(&["serve", "-e", greet, "--json", "--dry-run", "greet", "name=a", "times=2"]);
    let plan: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(plan["words"], json!(["echo", "Hello a", "2"]));
    for (words, expected) in [
        (&["serve", "-e", "greet"][..], "is no tool: write `NAME(ARGUMENT: TYPE) = PROGRAM WORD`"),
        (&["serve", "-e", "a.b = date"], "some hosts refuse the name"),
        (&["serve", "-e", "a = date", "-e", "a = date"], "there are two tools `a`"),
        (&["serve", "-e", greet, "--dry-run", "gret"], "did you mean `greet`?"),
        (&["serve", "-e", greet, "--dry-run", "greet", "nme=a"], "no argument `nme`; did you mean `name`?"),
        (&["serve", "-e", "say(a) = echo {a}", "--dry-run", "say", "a=-n"], "begins with `-`"),
    ] {
        let printed = typed(words);
        assert_eq!(printed.code, Some(1), "{printed:?}");
        assert!(printed.stderr.contains(expected), "{printed:?}");
    }
}

#[test]
fn a_file_is_checked_with_its_lines() {
    let machine = served(&FILE.replace(", loud = \"boolean?\"", ""), "serve-check");
    let check = || run(pintle().args(["serve", "tools.toml", "--check"]).current_dir(machine.path("")));
    assert_eq!(check().stdout, "tools.toml: 2 tools, 0 targets and 0 rules\n");
    for (file, expected) in [
        (FILE, "line 8: tool `echo`: argument `loud` has no place: write `{loud}`"),
        ("[tools.a]\ncomand = [\"x\"]\n", "line 2: unknown field `comand`; did you mean `command`?"),
        ("[tools.a]\ncommand = [\"echo\", \"{x}\"]\n", "line 1: tool `a`: `{x}` is no argument of the tool"),
        ("[tools.a]\ncommand = [\"x\"]\nenv = { TOKEN = \"hunter2\" }\n", "`TOKEN` looks like a secret"),
        ("[tools.\"a b\"]\ncommand = [\"x\"]\n", "some hosts refuse the name"),
    ] {
        machine.write("tools.toml", file);
        let printed = check();
        assert!(printed.code == Some(1) && printed.stderr.contains(expected), "{printed:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_others_can_write_is_refused_with_all_that_it_names() {
    use std::os::unix::fs::PermissionsExt as _;

    let include = "include = [\"more/*.toml\", \"more/*.md\"]\n";
    let api = "[apis.shop]\ndocument = \"shop.yaml\"\nbase = \"https://shop.example\"\n";
    let prompt = "[prompts.own]\nfile = \"own.txt\"\n";
    let file = format!("{include}{api}{prompt}[targets.demo]\nserver = \"demo\"\n");
    let machine = served(&file, "serve-writable");
    machine.write("more/a.toml", "[resources.a]\nuri = \"a://\"\ntext = \"a\"\n");
    machine.write("more/b.md", "Greet.\n");
    machine.write("own.txt", "Greet.\n");
    let path = "openapi: 3.1.0\ninfo: { title: Shop, version: 1 }\npaths:\n  /a: { $ref: 'paths.yaml#/a' }\n";
    machine.write("shop.yaml", path);
    machine
        .write("paths.yaml", "a: { get: { operationId: list, responses: { 200: { description: All } } } }\n");
    let check = || run(pintle().args(["serve", "tools.toml", "--check"]).current_dir(machine.path("")));
    assert_eq!(check().code, Some(0), "{:?}", check());
    for name in ["tools.toml", "more/a.toml", "more/b.md", "own.txt", "shop.yaml", "paths.yaml"] {
        let set = |mode| fs::set_permissions(machine.path(name), fs::Permissions::from_mode(mode)).unwrap();
        for mode in [0o666, 0o602] {
            set(mode);
            let printed = check();
            let is_refused = printed.code == Some(1) && printed.stderr.contains("others than you may write");
            assert!(is_refused && printed.stderr.contains("chmod go-w"), "{name}: {printed:?}");
        }
        set(0o644);
    }
    assert_eq!(check().code, Some(0));
}

#[cfg(unix)]
#[test]
fn a_link_out_of_a_folder_of_files_is_refused() {
    use std::os::unix::fs::symlink;

    let machine = served("include = [\"p/*.md\"]\n", "serve-link");
    machine.write("p/a.md", "Greet.\n");
    machine.write("secret", "hunter2\n");
    symlink("a.md", machine.path("p/b.md")).unwrap();
    let check = || run(pintle().args(["serve", "tools.toml", "--check"]).current_dir(machine.path("")));
    assert_eq!(check().code, Some(0), "{:?}", check());
    symlink(machine.path("secret"), machine.path("p/c.md")).unwrap();
    let printed = check();
    assert!(printed.stderr.contains("`p/c.md` is a link out of its folder: name the file"), "{printed:?}");
    // One that is named is wanted.
    machine.write("tools.toml", "include = [\"p/c.md\"]\n");
    assert_eq!(check().code, Some(0), "{:?}", check());
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_refused_at_once() {
    let machine = served("[prompts.z]\nfile = \"/dev/zero\"\n", "serve-no-file");
    let check = |file: &str| run(pintle().args(["serve", file, "--check"]).current_dir(machine.path("")));
    let made = std::process::Command::new("mkfifo").arg(machine.path("pipe")).status().unwrap();
    assert!(made.success());
    machine.write("api.toml", "[apis.a]\ndocument = \"pipe\"\n");
    for (file, expected) in [
        ("pipe", "`pipe` cannot be read: it is no file"),
        ("tools.toml", "`/dev/zero` cannot be read: it is no file"),
        ("api.toml", "it is not a file"),
    ] {
        let printed = check(file);
        assert!(printed.code == Some(1) && printed.stderr.contains(expected), "{printed:?}");
    }
}
