//! Requests to targets do not reach private addresses, unless the target is written that way.

use pintle::{Server, server::tool};

use crate::support::{machine::Machine, pintle, run};

/// Names that the system resolves to this machine, and that are not written as its address.
const NAMES: [&str; 2] = ["127.1", "2130706433"];

#[tokio::test]
async fn a_name_that_resolves_to_this_machine_is_refused_unless_the_file_allows_it() {
    let server = Server::new("inside", "0").tool(tool("look", || async { "secret" }));
    let serving = server.http().unwrap().guard(pintle::proto::http::Guard::any_host()).at("/mcp");
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let serving = serving.serve(listener).unwrap();
    let port = serving.address().port();
    let machine = Machine::new("gateway-addresses");
    let check = async |target: String| {
        machine.write("team.toml", &format!("[targets.inside]\n{target}\n"));
        let mut command = pintle();
        command.args(["gateway", "team.toml", "--check", "--connect"]).current_dir(machine.path(""));
        tokio::task::spawn_blocking(move || run(&mut command)).await.unwrap()
    };
    let written = check(format!("url = \"http://127.0.0.1:{port}/mcp\"")).await;
    assert!(written.stdout.contains("inside: 1 tool"), "{written:?}");
    for name in NAMES {
        let refused = check(format!("url = \"http://{name}:{port}/mcp\"")).await;
        assert_ne!(refused.code, Some(0), "{name}");
        assert!(refused.stderr.contains("connections to its address are not allowed"), "{refused:?}");
        let allowed = check(format!("url = \"http://{name}:{port}/mcp\"\nallow_private = true")).await;
        assert!(allowed.stdout.contains("inside: 1 tool"), "{allowed:?}");
    }
}
