//! Configuration files of hosts, dialect by dialect.

use std::time::Duration;

use pintle_host::config::{
    ConfigErrorKind, ConfigFile, Dialect, EntryTransport, RemoteKind, ResolvedServer, ServerEntry, Variables,
};

fn parse(path: &str, text: &str) -> ConfigFile {
    ConfigFile::parse(path, text).unwrap_or_else(|error| panic!("{error}"))
}

fn variables() -> Variables {
    Variables::none().set("TOKEN", "t0k").set("HOME", "/ada").workspace("/srv/shop").input("key", "k3y")
}

/// A server in one line: what would be started or connected to.
fn shown(entry: &ServerEntry) -> String {
    match entry.resolve(&variables()).unwrap_or_else(|error| panic!("{error}")) {
        ResolvedServer::Stdio(stdio) => {
            let env: Vec<_> = stdio.env.iter().map(|(name, value)| format!("{name}={value} ")).collect();
            let cwd = stdio.cwd.map(|cwd| format!(" in {cwd}")).unwrap_or_default();
            format!("{}{} {}{cwd}", env.concat(), stdio.command, stdio.args.join(" "))
        }
        ResolvedServer::Remote(remote) => {
            let headers: Vec<_> =
                remote.headers.iter().map(|(name, value)| format!(" {name}: {value}")).collect();
            format!("{}{}", remote.url, headers.concat())
        }
        _ => unreachable!(),
    }
}

#[test]
fn every_dialect() {
    let table: &[(&str, &str, Dialect, &[&str])] = &[
        // Claude Desktop
        (
            "claude_desktop_config.json",
            r#"{"mcpServers": {"fs": {"command": "npx", "args": ["-y", "fs", "/srv"], "env": {"A": "1", "PORT": 80, "X": null}}}}"#,
            Dialect::McpServers,
            &["A=1 PORT=80 npx -y fs /srv"],
        ),
        // Claude Code
        (
            ".mcp.json",
            r#"{"mcpServers": {
                "a": {"type": "http", "url": "${BASE:-https://a.test}/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
                "b": {"type": "sse", "url": "https://b.test/sse"},
                "c": {"type": "stdio", "command": "${HOME}/c"}
            }}"#,
            Dialect::McpServers,
            &["https://a.test/mcp Authorization: Bearer t0k", "https://b.test/sse", "/ada/c "],
        ),
        // Cursor
        (
            ".cursor/mcp.json",
            r#"{"mcpServers": {"a": {"command": "python", "args": ["${workspaceFolder}/a.py"], "env": {"KEY": "${env:TOKEN}"}}}}"#,
            Dialect::McpServers,
            &["KEY=t0k python /srv/shop/a.py"],
        ),
        // VS Code
        (
            ".vscode/mcp.json",
            r#"{
                // The user is asked.
                "inputs": [{"type": "promptString", "id": "key", "description": "The key", "password": true}],
                "servers": {
                    "a": {"type": "http", "url": "https://a.test/mcp", "headers": {"X-Key": "${input:key}"}},
                    "b": {"command": "b", "cwd": "${workspaceFolder}/b",},
                },
            }"#,
            Dialect::VsCode,
            &["https://a.test/mcp X-Key: k3y", "b  in /srv/shop/b"],
        ),
        ("settings.json", r#"{"mcp": {"servers": {"a": {"command": "a"}}}}"#, Dialect::VsCode, &["a "]),
        // Zed
        (
            "settings.json",
            r#"{"theme": "x", "context_servers": {
                "a": {"source": "custom", "command": "a", "args": ["${TOKEN}"], "env": {}},
                "b": {"command": {"path": "b", "args": ["1"], "env": {"K": "v"}}, "settings": {}},
                "c": {"url": "https://c.test/mcp"}
            }}"#,
            Dialect::Zed,
            &["a ${TOKEN}", "K=v b 1", "https://c.test/mcp"],
        ),
        // Windsurf, Gemini, Cline, Copilot, mcporter
        (
            "mcp_config.json",
            r#"{"mcpServers": {
                "windsurf": {"serverUrl": "https://w.test/mcp"},
                "gemini": {"httpUrl": "https://g.test/mcp", "timeout": 5000, "trust": true},
                "cline": {"type": "streamableHttp", "url": "https://cline.test/mcp", "disabled": false},
                "copilot": {"type": "local", "command": "c", "args": [], "tools": ["*"]},
                "mcporter": {"baseUrl": "https://m.test/mcp", "bearerTokenEnv": "TOKEN"},
                "alias": {"transport": "streamable-http", "url": "https://s.test/mcp"}
            }}"#,
            Dialect::McpServers,
            &[
                "https://w.test/mcp",
                "https://g.test/mcp",
                "https://cline.test/mcp",
                "c ",
                "https://m.test/mcp Authorization: Bearer t0k",
                "https://s.test/mcp",
            ],
        ),
        // OpenCode
        (
            "opencode.jsonc",
            r#"{"$schema": "x", "mcp": {
                "a": {"type": "local", "command": ["bun", "x", "a"], "environment": {"K": "{env:TOKEN}"}, "enabled": true},
                "b": {"type": "remote", "url": "https://b.test/mcp", "headers": {"Authorization": "Bearer {env:TOKEN}"}}
            }}"#,
            Dialect::OpenCode,
            &["K=t0k bun x a", "https://b.test/mcp Authorization: Bearer t0k"],
        ),
        // Codex
        (
            "config.toml",
            "model = \"x\"\n[mcp_servers.a]\ncommand = \"a\"\nargs = [\"${TOKEN}\"]\nenv = { K = \"v\" }\n\
             [mcp_servers.b]\nurl = \"https://b.test/mcp\"\nbearer_token_env_var = \"TOKEN\"\n\
             http_headers = { X = \"1\" }\nenv_http_headers = { Y = \"TOKEN\" }\n\
             [mcp_servers.\"c d\"]\ncommand = \"c\"\n[mcp_servers.\"c d\".env]\nK = \"v\"\n",
            Dialect::Codex,
            &["K=v a ${TOKEN}", "https://b.test/mcp X: 1 Y: t0k Authorization: Bearer t0k", "K=v c "],
        ),
        // FastMCP takes entries without a wrapper.
        (
            "mcp.json",
            r#"{"a": {"command": "a"}, "b": {"url": "http://b.test"}}"#,
            Dialect::Bare,
            &["a ", "http://b.test"],
        ),
    ];
    for (path, text, dialect, expected) in table {
        let file = parse(path, text);
        assert_eq!(file.rejected, [], "{path}");
        assert_eq!(file.dialect, Some(*dialect), "{path}");
        assert_eq!(file.servers.iter().map(shown).collect::<Vec<_>>(), *expected, "{path}");
    }
}

#[test]
fn files_without_servers_have_none() {
    for (path, text) in [
        ("a.json", ""),
        ("a.json", "{}"),
        ("a.json", "// nothing\n"),
        ("a.json", "\u{feff}{}"),
        ("settings.json", r#"{"theme": "dark", "mcp": {"enabled": true}}"#),
        ("config.toml", "model = \"x\""),
    ] {
        let file = parse(path, text);
        assert!(file.servers.is_empty() && file.rejected.is_empty() && file.dialect.is_none(), "{text}");
    }
}

#[test]
fn an_error_names_the_file_the_line_and_the_server() {
    let table = [
        (
            "a.json",
            r#"{"mcpServers": {"x": {}}}"#,
            "`a.json`, line 1, server `x`: the entry starts nothing: it needs a `command` or a `url` (extensions of an editor have neither)",
        ),
        (
            "a.json",
            "{\"mcpServers\": {\n\"x\": {\"command\": \"c\",\n\"args\": [\"a\", 1]}}}",
            "`a.json`, line 3, server `x`: `args[1]` has to be a string, not a number",
        ),
        (
            "a.json",
            r#"{"mcpServers": {"x": {"command": "c", "url": "https://x.test"}}}"#,
            "`a.json`, line 1, server `x`: there is a `command` and a `url`: remove one, or add a `type`",
        ),
        (
            "a.json",
            r#"{"mcpServers": {"x": {"type": "ws", "url": "wss://x.test"}}}"#,
            "`a.json`, line 1, server `x`: `type` is `ws`: write `stdio`, `http` or `sse`",
        ),
        (
            "a.json",
            r#"{"mcpServers": {"x": {"type": "http", "command": "x"}}}"#,
            "`a.json`, line 1, server `x`: `url` is missing",
        ),
        (
            "a.json",
            r#"{"mcpServers": {"x": {"type": "stdio"}}}"#,
            "`a.json`, line 1, server `x`: `command` is missing",
        ),
        (
            "a.json",
            r#"{"mcpServers": {"x": {"command": ""}}}"#,
            "`a.json`, line 1, server `x`: `command` is empty",
        ),
        (
            "a.json",
            r#"{"mcpServers": {"x": "npx"}}"#,
            "`a.json`, line 1, server `x`: an entry has to be an object, not a string",
        ),
        (
            "a.json",
            r#"{"mcpServers": {"x": {"command": "c", "env": {"K": []}}}}"#,
            "`a.json`, line 1, server `x`: `env.K` has to be a string, not a list",
        ),
        (
            "a.json",
            r#"{"mcpServers": {"x": {"command": "c", "disabled": "yes"}}}"#,
            "`a.json`, line 1, server `x`: `disabled` has to be a boolean, not a string",
        ),
        (
            "a.json",
            r#"{"mcpServers": {"x": {"command": "c", "envFile": 1}}}"#,
            "`a.json`, line 1, server `x`: `envFile` has to be a string, not a number",
        ),
        (
            "a.json",
            "{\"mcpServers\": {\"x\": {\"command\": \"c\"},\n\"x\": {\"command\": \"d\"}}}",
            "`a.json`, line 2, server `x`: the file names this server in line 1 already",
        ),
        (
            "a.toml",
            "[mcp_servers.x]\nurl = \"https://x.test\"\nbearer_token_env_var = \"a b\"",
            "`a.toml`, line 3, server `x`: `bearer_token_env_var` has to name an environment variable",
        ),
        (
            "a.toml",
            "[mcp_servers.x]\ncommand = \"x\"\ntool_timeout_sec = -1",
            "`a.toml`, line 3, server `x`: `tool_timeout_sec` is out of range",
        ),
    ];
    for (path, text, expected) in table {
        let file = parse(path, text);
        let rejected: Vec<_> = file.rejected.iter().map(ToString::to_string).collect();
        assert_eq!(rejected, [expected]);
        assert!(file.servers.is_empty(), "{text}");
    }
}

#[test]
fn a_file_that_cannot_be_read_says_where() {
    let table = [
        (
            "a.json",
            "{\n  \"mcpServers\": {\"x\" 1}}",
            "`a.json`, line 2: invalid JSON at column 22: expected colon after the string or word in object property",
        ),
        ("a.json", "[]", "`a.json`: the file has to be an object, not a list"),
        ("a.json", r#"{"mcpServers": []}"#, "`a.json`, line 1: the servers have to be an object, not a list"),
        ("a.json", r#"{"mcpservers": {}}"#, "`a.json`, line 1: `mcpservers` is not read: write `mcpServers`"),
        (
            "a.json",
            r#"{"mcp_servers": {}}"#,
            "`a.json`, line 1: `mcp_servers` is not read: write `mcpServers`",
        ),
        ("a.toml", "\n[mcpServers.x]", "`a.toml`, line 2: `mcpServers` is not read: write `mcp_servers`"),
        (
            "a.json",
            r#"{"mcpServers": {"a": {"command": 'c'}}}"#,
            "`a.json`, line 1: invalid JSON at column 34: single-quoted strings are not allowed",
        ),
    ];
    for (path, text, expected) in table {
        assert_eq!(ConfigFile::parse(path, text).unwrap_err().to_string(), expected);
    }
    let error = ConfigFile::read("no/such/file.json").unwrap_err();
    assert_eq!(error.kind, ConfigErrorKind::Io(std::io::ErrorKind::NotFound));
    assert!(error.to_string().starts_with("`no/such/file.json`: the file cannot be read: "), "{error}");
    assert!(ConfigFile::read(std::env::temp_dir()).unwrap_err().to_string().ends_with(": it is not a file"));
}

#[test]
fn the_text_of_a_broken_file_is_not_in_the_error() {
    for (path, text) in [
        (
            "a.json",
            "{\"mcpServers\": {\"x\": {\"command\": \"c\", \"env\": {\"K\": \"s3cret\"} \"args\": []}}}",
        ),
        ("a.json", "{\"mcpServers\": {\"x\": {\"env\": {\"K\": s3cret}}}}"),
        ("a.toml", "[mcp_servers.x]\nenv = { K = s3cret }"),
        ("a.toml", "[mcp_servers.x]\nenv = { K = \"s3cret }"),
        ("a.toml", "[mcp_servers.x]\nenv.K = \"a\" s3cret"),
    ] {
        let error = ConfigFile::parse(path, text).unwrap_err();
        assert_eq!(error.kind, ConfigErrorKind::Syntax);
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
    }
}

#[test]
fn secrets_are_not_printed() {
    let text = r#"{"mcpServers": {
        "a": {"command": "c", "args": ["--token", "s3cret"], "env": {"K": "s3cret"}, "other": "s3cret"},
        "b": {"url": "https://me:s3cret@b.test/mcp?key=s3cret", "headers": {"X": "s3cret"}},
        "c": {"command": 1, "args": ["s3cret"]},
        "d": {"url": "https://d.test", "headers": {"X": "${S}"}},
        "e": {"url": "https://me:s3cret@e.test/mcp"},
        "f": {"url": "https://f.test/mcp", "headers": {"X": "s3cret\n"}}
    }}"#;
    let file = parse("a.json", text);
    let variables = Variables::none().set("S", "s3cret").input("i", "s3cret");
    let mut printed = format!("{file:?} {variables:?}");
    for entry in &file.servers {
        let resolved = entry.resolve(&variables).unwrap();
        printed += &format!("{resolved:?}");
        match &resolved {
            ResolvedServer::Stdio(stdio) => printed += &format!("{:?}", stdio.command()),
            ResolvedServer::Remote(remote) => match remote.http() {
                Ok(http) => printed += &format!("{http:?}"),
                Err(error) => printed += &format!("{error} {error:?}"),
            },
            _ => unreachable!(),
        }
    }
    assert!(!printed.contains("s3cret"), "{printed}");
    // What the user looks for is there.
    for word in [
        "https://b.test/mcp",
        "\"X\"",
        "\"K\"",
        "the URL has a user or a password in it",
        "the value of the header `x` is invalid",
    ] {
        assert!(printed.contains(word), "{word}: {printed}");
    }
}

#[test]
fn variables_that_are_not_set_are_named() {
    let file = parse(
        ".vscode/mcp.json",
        "{\"servers\": {\n\"a\": {\"command\": \"c\", \"env\": {\"K\": \"${env:KEY}\"}},\n\"b\": {\"url\": \"https://b.test/${input:id}\"}}}",
    );
    let error = file.servers[0].resolve(&Variables::none()).unwrap_err();
    assert_eq!(error.kind, ConfigErrorKind::UnsetVariable("KEY".into()));
    assert_eq!(
        error.to_string(),
        "`.vscode/mcp.json`, line 2, server `a`: the variable `KEY` is not set: set it, or write `${KEY:-a default}`"
    );
    let error = file.servers[1].resolve(&Variables::none()).unwrap_err();
    assert_eq!(error.kind, ConfigErrorKind::UnsetInput("id".into()));
    assert_eq!(
        error.to_string(),
        "`.vscode/mcp.json`, line 3, server `b`: the input `id` is not given: ask for it, and give it with `Variables::input`"
    );
    let required: Vec<_> = file.servers.iter().flat_map(|entry| entry.templates()).collect();
    assert_eq!(required.iter().flat_map(|text| text.required()).collect::<Vec<_>>(), ["KEY"]);
    assert_eq!(required.iter().flat_map(|text| text.inputs()).collect::<Vec<_>>(), ["id"]);
}

#[test]
fn what_else_an_entry_can_have() {
    let text = "[mcp_servers.a]\ncommand = \"a\"\nenabled = false\nstartup_timeout_sec = 2.5\ntool_timeout_sec = 90\n\
                enabled_tools = [\"x\", \"y\"]\ndisabled_tools = [\"y\"]\nenv_vars = [\"K\", { name = \"L\", source = \"local\" }]\n\
                scopes = [\"z\"]\n";
    let file = parse("config.toml", text);
    let [entry] = &file.servers[..] else { panic!("{file:?}") };
    assert!(!entry.enabled);
    assert_eq!(entry.startup_timeout, Some(Duration::from_millis(2500)));
    assert_eq!(entry.call_timeout, Some(Duration::from_secs(90)));
    assert!(entry.tools.allows("x") && !entry.tools.allows("y") && !entry.tools.allows("z"));
    assert_eq!(entry.raw()["scopes"][0], "z");
    assert_eq!(entry.source.line, 1);
    let EntryTransport::Stdio(stdio) = &entry.transport else { panic!() };
    assert_eq!(stdio.inherit_env, ["K", "L"]);

    let file = parse(
        "a.json",
        r#"{"mcpServers": {"a": {"type": "sse", "url": "https://a.test", "disabled": true, "disabledTools": ["d"]}}}"#,
    );
    let [entry] = &file.servers[..] else { panic!("{file:?}") };
    assert!(!entry.enabled && entry.tools.allows("c") && !entry.tools.allows("d"));
    let EntryTransport::Remote(remote) = &entry.transport else { panic!() };
    assert_eq!(remote.kind, Some(RemoteKind::Sse));
}

#[test]
fn variables_of_a_file_are_added_to_the_environment() {
    let folder = std::env::temp_dir().join(format!("pintle-host-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("good.env"), "A=file\nB=file\n").unwrap();
    std::fs::write(folder.join("bad.env"), "A=s3cret\nB='s3cret\n").unwrap();
    let entry = |file: &str| {
        let text = format!(
            r#"{{"servers": {{"x": {{"command": "c", "env": {{"B": "entry"}}, "envFile": "${{workspaceFolder}}/{file}"}}}}}}"#
        );
        let entry = parse("mcp.json", &text).servers.remove(0);
        entry.resolve(&Variables::none().workspace(&folder))
    };
    let good = entry("good.env");
    let errors = [entry("bad.env").unwrap_err(), entry("none.env").unwrap_err(), entry("").unwrap_err()];
    std::fs::remove_dir_all(&folder).unwrap();
    let ResolvedServer::Stdio(stdio) = good.unwrap() else { panic!() };
    let pairs: Vec<_> = stdio.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    // The last one counts.
    assert_eq!(pairs, [("A", "file"), ("B", "file"), ("B", "entry")]);
    let [bad, none, directory] = errors.map(|error| error.to_string());
    assert!(bad.contains("server `x`: line 2 of `envFile` is invalid") && !bad.contains("s3cret"), "{bad}");
    assert!(none.contains("server `x`: `envFile` cannot be read"), "{none}");
    assert!(directory.ends_with("is not a file"), "{directory}");
}

#[test]
fn inputs_are_what_the_user_is_asked_for() {
    let text = r#"{"servers": {}, "inputs": [
        {"id": "a", "type": "promptString", "description": "A", "password": true},
        {"id": "b", "type": "pickString", "options": ["x", "y"]},
        {"type": "promptString"}
    ]}"#;
    let inputs = parse("mcp.json", text).inputs;
    assert_eq!(inputs.len(), 2);
    assert!(inputs[0].secret && inputs[0].description.as_deref() == Some("A"));
    assert!(!inputs[1].secret && inputs[1].options == ["x", "y"]);
}

#[test]
fn servers_of_one_project_are_apart() {
    let text = r#"{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}, "projects": {
        "/srv/shop": {"history": [1], "mcpServers": {"b": {"command": "b of shop"}}},
        "/srv/other": {"mcpServers": {"c": {"command": "c"}}}
    }}"#;
    let file = parse(".claude.json", text);
    assert_eq!(shown(file.server("b").unwrap()), "b ");
    assert!(file.server("c").is_none());
    let of_shop: Vec<_> = file.servers_of("/srv/shop").map(shown).collect();
    assert_eq!(of_shop, ["a ", "b of shop "]);
}

#[test]
fn what_a_file_can_make_one_hold_is_bounded() {
    let error = ConfigFile::parse("a.json", &" ".repeat((32 << 20) + 1)).unwrap_err();
    assert_eq!(error.kind, ConfigErrorKind::Limit);
    let entries: Vec<_> = (0..1001).map(|at| format!(r#""s{at}": {{"command": "c"}}"#)).collect();
    let error =
        ConfigFile::parse("a.json", &format!(r#"{{"mcpServers": {{{}}}}}"#, entries.join(","))).unwrap_err();
    assert_eq!(error.kind, ConfigErrorKind::Limit);
    let deep = format!(r#"{{"mcpServers": {{"a": {}1{}}}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(ConfigFile::parse("a.json", &deep).unwrap_err().kind, ConfigErrorKind::Syntax);
    let deep = format!("a = {}1{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(ConfigFile::parse("a.toml", &deep).unwrap_err().kind, ConfigErrorKind::Syntax);
    for deep in [format!("{} = 1", vec!["a"; 50_000].join(".")), format!("[{}]", vec!["a"; 50_000].join("."))]
    {
        assert_eq!(ConfigFile::parse("a.toml", &deep).unwrap_err().kind, ConfigErrorKind::Syntax);
    }
}
