//! Skills that a gate hides come out of no result.

use pintle::{
    Server,
    server::{Decision, GateRequest},
};
use pintle_relay::Relay;
use pintle_skills::Skills;
use serde_json::json;

use crate::support::eras::{Client, R4, R5};

fn no_secrets(request: &GateRequest<'_>) -> Decision {
    if request.name().contains("secret") { Decision::Hide } else { Decision::Allow }
}

#[tokio::test]
async fn skills_that_are_hidden_are_nowhere() {
    let text = |name: &str| format!("---\nname: {name}\ndescription: All about {name}.\n---\n\nRead.\n");
    let (open, secret) = (text("open"), text("secret"));
    let skills = || {
        let files = [
            ("a/open/SKILL.md", open.as_str()),
            ("a/open/secret.txt", "hidden"),
            ("a/secret/SKILL.md", secret.as_str()),
        ];
        Server::new("s", "0")
            .with(Skills::from_files("skill://", files).unwrap().list_directories().in_sessions())
    };
    let client = pintle::Client::new("relay", "0").revisions([R5.parse().unwrap()]);
    let behind = skills();
    let relay = Relay::connect(client, move || {
        let transport = behind.in_process().map_err(std::io::Error::other);
        async { transport }
    });
    let relayed = Server::new("outer", "0").provider(relay.await.unwrap()).gate(no_secrets);
    for (server, revision) in
        [(skills().gate(no_secrets), R4), (skills().gate(no_secrets), R5), (relayed, R5)]
    {
        let mut client = Client::open(&server, revision, json!({})).await;
        let listed = client.call("skills/list", json!({})).await;
        assert!(listed.to_string().contains("All about open."), "{listed}");
        let directory = client.call("resources/directory/read", json!({"uri": "skill://a/open"})).await;
        assert!(directory.to_string().contains("skill://a/open/SKILL.md"), "{directory}");
        for answer in [listed, directory] {
            assert!(!answer.to_string().contains("secret"), "{answer}");
        }
        for (method, uri) in
            [("skills/get", "skill://a/secret/SKILL.md"), ("resources/directory/read", "skill://a/secret")]
        {
            let hidden = client.call(method, json!({"uri": uri})).await["error"].to_string();
            let absent = client.call(method, json!({"uri": uri.replace("secret", "absent")})).await;
            assert_eq!(hidden.replace("secret", "absent"), absent["error"].to_string(), "{revision}");
        }
    }
}
