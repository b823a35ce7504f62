//! Subscriptions and methods over HTTP: what is hidden is as what does not exist, in the status too.

use pintle::{
    Server,
    server::{Cx, Decision, GateRequest, RequestError, method, resource},
};
use serde_json::{Value, json};

use crate::support::{
    eras::{HTTP_SESSIONS, R5},
    http_client::Wire,
};

fn server() -> Server {
    let names = ["open", "denied", "hidden"];
    let server = names.into_iter().fold(Server::new("s", "0"), |server, name| {
        server
            .resource(resource(format!("{name}://r"), name, || async { "read" }))
            .method(method(format!("example/{name}"), |_: Cx, _: Value| async {
                Ok::<_, RequestError>(json!({}))
            }))
    });
    server.gate(|request: &GateRequest<'_>| match request.name() {
        name if name.contains("hidden") => Decision::Hide,
        name if name.contains("denied") => Decision::Deny("it is Monday".to_owned()),
        _ => Decision::Allow,
    })
}

#[tokio::test]
async fn sessions_are_refused_what_is_denied_or_hidden() {
    let http = server().http().unwrap();
    for revision in HTTP_SESSIONS {
        let wire = Wire::new(&http).open(revision, json!({})).await;
        let mut answers = Vec::new();
        for (id, name) in (1..).zip(["open", "denied", "hidden", "absent"]) {
            let uri = format!("{name}://r");
            for (method, params) in
                [("resources/subscribe", json!({"uri": uri})), (&*format!("example/{name}"), json!({}))]
            {
                let mut answer = wire.call(id, method, params).await;
                let status = answer.status;
                answers.push(
                    format!("{status} {}", answer.json().await)
                        .replace(name, "it")
                        .replace(&format!("\"id\":{id}"), ""),
                );
            }
        }
        let [open, run, denied, refused, hidden, none, absent, unknown] = &answers[..] else {
            panic!("{answers:?}")
        };
        assert!(open.contains("\"result\"") && run.contains("\"result\""), "{answers:?}");
        assert!(denied.contains("it is Monday") && refused.contains("it is Monday"), "{answers:?}");
        assert!(hidden.contains("no such resource") && none.contains("-32601"), "{answers:?}");
        assert_eq!((hidden, none), (absent, unknown), "{revision}");
    }
}

#[tokio::test]
async fn subscriptions_without_a_session_are_granted_without_what_is_hidden() {
    let http = server().http().unwrap();
    let wire = Wire::new(&http);
    let listen = async |uris: &[&str]| {
        let filter = json!({"notifications": {"resourceSubscriptions": uris}});
        wire.modern(1, "subscriptions/listen", filter, json!({})).await
    };
    let granted = listen(&["open://r", "hidden://r", "absent://r"]).await.message().await.unwrap();
    assert_eq!(granted["params"]["notifications"]["resourceSubscriptions"], json!(["open://r"]), "{granted}");
    let denied = listen(&["open://r", "denied://r"]).await.json().await;
    assert!(denied["error"]["message"].as_str().unwrap().contains("it is Monday"), "{denied}");
    let mut hidden = wire.modern(2, "example/hidden", json!({}), json!({})).await;
    let mut absent = wire.modern(2, "example/absent", json!({}), json!({})).await;
    assert_eq!(hidden.status, absent.status, "{R5}");
    let hidden = hidden.json().await.to_string().replace("hidden", "absent");
    assert_eq!(hidden, absent.json().await.to_string());
}
