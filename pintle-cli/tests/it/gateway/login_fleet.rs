//! Logins of principals to a gateway of two processes: each request of a browser may arrive at either.

use pintle::{
    Client, Connection,
    client::{Mode, http::Http},
};

use super::{
    fleet::RedisProcess,
    names,
    principal_login::{Browser, link_of, whoami},
};
use crate::support::{
    HttpServing, free_address::free_address, machine::Machine, pintle, protected::ProtectedServer,
};

/// Two processes behind a balancer at the address of the first.
struct LoginProcesses {
    server: ProtectedServer,
    _machine: Machine,
    _redis: RedisProcess,
    addresses: [String; 2],
    _running: Vec<HttpServing>,
}

impl LoginProcesses {
    /// Starts them. Returns `None` without a `redis-server`.
    fn start(name: &str) -> Option<Self> {
        let redis = RedisProcess::start()?;
        let (server, machine) = (ProtectedServer::start(), Machine::new(name));
        let addresses = [(); 2].map(|()| free_address().to_string());
        let file = format!(
            "url = \"http://{}\"\n[targets.notes]\nurl = \"{}\"\nlogin = \"each\"\n",
            addresses[0], server.url
        );
        machine.write("team.toml", &file);
        let start = |address: &String| {
            let mut command = pintle();
            command.args(["gateway", "team.toml", "--http", address, "--redis-env", "FLEET_REDIS"]);
            command.args(["--redis-key-env", "FLEET_KEY", "--bearer-env", "ANN", "--bearer-env", "BOB"]);
            command.env("FLEET_REDIS", redis.url()).env("FLEET_KEY", "0f".repeat(32));
            command.env("ANN", "ANN-token").env("BOB", "BOB-token");
            // They share what they keep.
            command.env("PINTLE_STATE_DIR", machine.path("state")).current_dir(machine.path(""));
            HttpServing::of(command)
        };
        let running = addresses.iter().map(start).collect();
        Some(Self { server, _machine: machine, _redis: redis, addresses, _running: running })
    }

    async fn connect(&self, process: usize, principal: &str) -> Connection {
        let http = Http::new(format!("http://{}/mcp", self.addresses[process])).unwrap();
        let http = http.bearer(format!("{principal}-token")).unwrap();
        Client::new("host", "1.0.0").mode(Mode::Modern).connect(http).await.unwrap()
    }

    /// Returns an address of the gateway as the balancer passes it on to a process.
    fn at(&self, process: usize, url: &str) -> String {
        url.replace(&self.addresses[0], &self.addresses[process])
    }
}

#[tokio::test]
async fn a_login_goes_on_at_whichever_process_its_browser_reaches_and_is_that_of_all() {
    // The processes of the page, of its button and of the callback; the link is of the first process.
    for (page, button, callback) in [(0, 1, 1), (1, 0, 1), (1, 1, 0), (1, 1, 1)] {
        let Some(gateway) = LoginProcesses::start("gateway-login-fleet") else { return };
        let (first, second) = (gateway.connect(0, "ANN").await, gateway.connect(1, "ANN").await);
        let link = link_of(&first).await;
        assert_ne!(link_of(&second).await, link, "each process has its own");
        gateway.server.login.subject("ann@notes");
        let (mut browser, mut other) = (Browser::default(), Browser::default());
        let shown = browser.load("GET", &gateway.at(page, &link));
        assert!(shown.status == 200 && shown.body.contains("I am ANN"), "{}", shown.body);
        // A process does not know a browser that has not seen the page.
        let action = shown.action(&link);
        assert_eq!(other.load("POST", &gateway.at(button, &action)).status, 403);
        let begun = browser.load("POST", &gateway.at(button, &action));
        assert_eq!(begun.status, 303, "{}", begun.body);
        let returned = browser.load("GET", &begun.location()).location();
        let crossed = other.load("GET", &gateway.at(callback, &returned)).status;
        assert!(matches!(crossed, 403 | 410), "{crossed}");
        let connected = browser.load("GET", &gateway.at(callback, &returned));
        assert!(connected.body.contains("connected to ANN"), "{}: {}", connected.status, connected.body);
        let again = browser.load("GET", &gateway.at(callback, &returned));
        assert_eq!(again.status, 410, "it is used once: {}", again.body);
        for client in [&first, &second] {
            assert_eq!(names(client, |names| names == ["notes_whoami"]).await, ["notes_whoami"]);
            assert_eq!(whoami(client).await.unwrap(), "ann@notes");
        }
        let bob = gateway.connect(1, "BOB").await;
        assert!(whoami(&bob).await.unwrap_err().contains("requires a login of `BOB`"));
    }
}
