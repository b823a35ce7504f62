//! Whether a gateway is ready, and why not.

use std::time::Duration;

use pintle::{
    Client, Server,
    client::{Mode, http::Http},
    server::tool,
};

use crate::{
    gateway::{page_at, target},
    support::{HttpServing, PATIENCE, machine::Machine, pintle},
};

fn start(machine: &Machine, file: &str) -> (HttpServing, String) {
    machine.write("team.toml", file);
    let mut command = pintle();
    command.args(["gateway", "team.toml", "--http", "127.0.0.1:0"]).current_dir(machine.path(""));
    let gateway = HttpServing::of(command);
    let address = gateway.url.strip_prefix("http://").unwrap().trim_end_matches("/mcp").to_owned();
    (gateway, address)
}

/// Asks for a page until it has a text.
async fn page_with(address: &str, path: &str, text: &str) -> String {
    let asked = async {
        loop {
            let page = page_at(address, path, "");
            if page.contains(text) {
                return page;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let found = tokio::time::timeout(PATIENCE, asked).await;
    found.unwrap_or_else(|_| panic!("`{text}` is not in {}", page_at(address, path, "")))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_that_has_died_is_down_and_one_that_is_not_required_is_no_reason() {
    let server = |name: &str| Server::new(name, "0").tool(tool("work", || async { "done" }));
    let (a, b) = (server("a"), server("b"));
    let (a, b) = (a.serve_http("127.0.0.1:0").await.unwrap(), b.serve_http("127.0.0.1:0").await.unwrap());
    let machine = Machine::new("gateway-ready");
    let file = format!("{}required = true\n{}", target("a", a.address()), target("b", b.address()));
    let (gateway, address) = start(&machine, &file);
    page_with(&address, "/ready", "HTTP/1.1 200").await;
    let client = Client::new("host", "1.0.0").mode(Mode::Modern);
    let client = client.connect(Http::new(&gateway.url).unwrap()).await.unwrap();
    b.shutdown(Duration::ZERO).await;
    client.call_tool("b_work", ()).await.unwrap_err();
    let ready = page_with(&address, "/ready", "b is down for").await;
    assert!(ready.starts_with("HTTP/1.1 200") && ready.contains("and is not required: "), "{ready}");
    a.shutdown(Duration::ZERO).await;
    client.call_tool("a_work", ()).await.unwrap_err();
    let ready = page_with(&address, "/ready", "a is down for").await;
    assert!(ready.starts_with("HTTP/1.1 503"), "{ready}");
    let metrics = page_at(&address, "/metrics", "");
    for backend in ["a", "b"] {
        assert!(metrics.contains(&format!("backend_up{{backend=\"{backend}\"}} 0")), "{metrics}");
    }
    gateway.printed(" WARN pintle::service: `a` does not answer: ").await;
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_without_its_redis_is_not_ready_and_says_so() {
    use crate::gateway::fleet::{self, RedisProcess};

    let Some(redis) = RedisProcess::start() else { return };
    let machine = Machine::new("gateway-ready-redis");
    let gateway = HttpServing::of(fleet::gateway(&machine, &redis.url(), &"0f".repeat(32)));
    let address = gateway.url.strip_prefix("http://").unwrap().trim_end_matches("/mcp").to_owned();
    page_with(&address, "/ready", "HTTP/1.1 200").await;
    drop(redis);
    gateway.printed("WARN pintle::service: the Redis of the gateway cannot be used").await;
    let ready = page_at(&address, "/ready", "");
    assert!(ready.starts_with("HTTP/1.1 503") && ready.contains("the store is down: "), "{ready}");
    assert!(!ready.contains("sesame"), "{ready}");
}
