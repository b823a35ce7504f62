//! Logins of a bridge, whose host gives it no terminal.

use pintle::{
    Client, Connection,
    client::{Change, Event, Mode},
};
use serde_json::Value;

use super::HostedBridge;
use crate::support::{
    machine::Machine,
    protected::{ProtectedServer, browse},
};

/// Returns the address of the login page in an error.
fn page_in(error: &str) -> String {
    let (_, rest) = error.split_once("open http://").unwrap_or_else(|| panic!("no page: {error}"));
    format!("http://{}", rest.split(' ').next().unwrap())
}

/// Plays the user, who logs in.
async fn log_in(page: &str) {
    let page = page.to_owned();
    tokio::task::spawn_blocking(move || browse(&page, "")).await.unwrap();
}

async fn whoami(client: &Connection) -> pintle::Result<String> {
    Ok(client.call_tool("whoami", ()).await?.text())
}

#[tokio::test]
async fn calls_fail_with_the_login_page_until_the_user_has_logged_in() {
    for mode in [Mode::Legacy, Mode::Modern] {
        let (machine, server) = (Machine::new("bridge-login"), ProtectedServer::start());
        let bridge = HostedBridge::new(&machine, &[&server.url, "--no-browser"]);
        let client = Client::new("host", "1.0.0").mode(mode).connect(bridge.spawn()).await.unwrap();
        let mut changes = client.changes().await.unwrap();
        let refused = client.tools().await.unwrap_err().to_string();
        let page = page_in(&refused);
        assert!(refused.contains(&format!("`{}` requires a login", server.url)), "{refused}");
        let refused = whoami(&client).await.unwrap_err().to_string();
        assert_eq!(page_in(&refused), page, "it is the same login");
        assert!(client.instructions().unwrap().contains(&page));
        assert!(bridge.stderr().contains(&page), "{}", bridge.stderr());

        log_in(&page).await;
        while !matches!(changes.next().await.unwrap(), Event::Changed(Change::Tools)) {}
        assert_eq!(whoami(&client).await.unwrap(), "alice");
        assert_eq!(client.tools().await.unwrap().len(), 1);
        client.close().await;
        // The login is that of the user, for all verbs, and nothing else is left.
        assert_eq!(machine.typed(&["call", &server.url, "whoami"]).stdout, "alice\n");
        let logins: Value = serde_json::from_str(&machine.typed(&["auth", "ls", "--json"]).stdout).unwrap();
        assert_eq!(logins["logins"][0]["url"], *server.url);
        let mut files: Vec<_> = std::fs::read_dir(machine.path("home/.local/state/pintle"))
            .unwrap()
            .flatten()
            .map(|file| file.file_name())
            .collect();
        files.sort();
        assert_eq!(files, ["credentials.json", "logins.json"]);
    }
}

#[cfg(unix)]
#[tokio::test]
async fn bridges_that_start_together_open_one_browser() {
    let (machine, server) = (Machine::new("bridge-browser"), ProtectedServer::start());
    let opened = machine.path("home/opened");
    let browser = machine.path("home/browser");
    machine.write("home/browser", &format!("#!/bin/sh\necho \"$1\" >> {}\n", opened.display()));
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&browser, executable).unwrap();
    let bridges: Vec<_> = (0..3)
        .map(|_| HostedBridge::new(&machine, &[&server.url]).env("BROWSER", &browser.to_string_lossy()))
        .collect();
    let mut clients = Vec::new();
    for child in bridges.iter().map(HostedBridge::spawn).collect::<Vec<_>>() {
        clients.push(tokio::spawn(async move { Client::new("host", "1.0.0").connect(child).await.unwrap() }));
    }
    let mut hosts = Vec::new();
    let mut pages = Vec::new();
    for client in clients {
        let client = client.await.unwrap();
        let changes = client.changes().await.unwrap();
        pages.push(page_in(&whoami(&client).await.unwrap_err().to_string()));
        hosts.push((client, changes));
    }
    pages.dedup();
    assert_eq!(pages.len(), 1, "{pages:#?}");
    assert_eq!(std::fs::read_to_string(&opened).unwrap(), format!("{}\n", pages[0]));
    log_in(&pages[0]).await;
    for (client, changes) in &mut hosts {
        // Until the lists have changed, however often.
        while !matches!(changes.next().await.unwrap(), Event::Changed(Change::Tools)) {}
        assert_eq!(whoami(client).await.unwrap(), "alice");
    }
    assert_eq!(std::fs::read_to_string(&opened).unwrap().lines().count(), 1);
}

#[tokio::test]
async fn more_rights_are_asked_for_when_a_tool_needs_them() {
    for mode in [Mode::Legacy, Mode::Modern] {
        let (machine, server) = (Machine::new("bridge-step-up"), ProtectedServer::with_write());
        assert_eq!(machine.typed(&["login", &server.url, "--device"]).code, Some(0));
        let bridge = HostedBridge::new(&machine, &[&server.url, "--no-browser"]);
        let client = Client::new("host", "1.0.0").mode(mode).connect(bridge.spawn()).await.unwrap();
        assert_eq!(whoami(&client).await.unwrap(), "alice");
        assert_eq!(client.server_info().unwrap().name, "notes");
        let write = async || Ok::<_, pintle::Error>(client.call_tool("write", ()).await?.text());
        let page = page_in(&write().await.unwrap_err().to_string());
        assert!(page.contains("notes%3Awrite") || page.contains("notes:write"), "{page}");
        // What needs no more goes on meanwhile.
        assert_eq!(whoami(&client).await.unwrap(), "alice");
        assert_eq!(page_in(&write().await.unwrap_err().to_string()), page);
        log_in(&page).await;
        // The tokens are requested when the browser has come back.
        let mut written = write().await;
        for _ in 0..1000 {
            if written.is_ok() {
                break;
            }
            tokio::task::yield_now().await;
            written = write().await;
        }
        assert_eq!(written.unwrap(), "written by alice");
        assert!(bridge.stderr().contains(&page), "{}", bridge.stderr());
    }
}
