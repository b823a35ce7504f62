//! A process of its own, a thousand calls at once: all are answered, no task is left, and its memory does not grow.

#[cfg(feature = "client")]
mod from_outside {
    use std::time::Duration;

    use pintle::{Client, Connection, Error, proto::Revision, transport::Stderr};
    use serde_json::json;
    use tokio::task::JoinSet;

    /// Calls a thousand times at once. Those that never end are given up, all others must be answered.
    async fn thousand(server: &Connection) {
        let mut calls = JoinSet::new();
        for n in 0..1000_u64 {
            let server = server.clone();
            calls.spawn(async move {
                let call = server.call_tool("work", json!({"n": n}));
                if n.is_multiple_of(5) {
                    let given_up = tokio::time::timeout(Duration::from_millis(n % 50), call).await;
                    return assert!(given_up.is_err(), "{n}");
                }
                match call.await {
                    Err(Error::Rpc(error)) if n.is_multiple_of(13) => assert_eq!(error.code.0, -32603),
                    result => assert_eq!(result.unwrap().content[0].as_text(), Some(&*n.to_string())),
                }
            });
        }
        while let Some(done) = calls.join_next().await {
            done.unwrap();
        }
    }

    /// Tasks that live and pages that are resident.
    async fn state(server: &Connection) -> (u64, u64) {
        let result = server.call_tool("state", ()).await.unwrap();
        let (tasks, pages) = result.content[0].as_text().unwrap().split_once(' ').unwrap();
        (tasks.parse().unwrap(), pages.parse().unwrap())
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_thousand_calls_at_once_again_and_again() {
        for revision in Revision::all().take(2) {
            let child = crate::support::child_servers::command("serve").stderr(Stderr::lines(|_| {}));
            let client = Client::new("load", "0").revisions([revision]);
            let server = client.connect(child.spawn().unwrap()).await.unwrap();
            let (tasks, _) = state(&server).await;
            for _ in 0..4 {
                thousand(&server).await;
            }
            let (_, before) = state(&server).await;
            for _ in 0..6 {
                thousand(&server).await;
            }
            // The call that was given up last may be told of in one write with the next: its task ends right after that.
            state(&server).await;
            let (left, after) = state(&server).await;
            assert_eq!(left, tasks, "{}", revision.as_str());
            // A page is 4 KiB at least: 6,000 calls that left 200 bytes each would show.
            assert!(after <= before + 250, "{before} pages became {after} ({})", revision.as_str());
            server.close().await;
        }
    }
}
