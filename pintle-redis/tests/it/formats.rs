//! Records that another version of this program has written: while a version is rolled out, both are there.

use pintle::{
    Server,
    server::{
        StateKeys,
        store::{Expected, GetOptions, Got, Key, Life, Put, Space, Store as _},
    },
};
use pintle_redis::RedisOptions;
use pintle_tasks::TaskStore as _;

use crate::{
    faults::{INITIALIZE, PING, SESSION, post},
    redis_server::{RedisServer, connected},
};

/// Replaces a session by a record of this format, as another process does: its version is then one more.
pub(crate) fn rewritten(format: u8, change: impl Fn(&str) -> String) -> impl FnOnce(Vec<u8>) -> Vec<u8> {
    move |value| {
        let line = value.iter().position(|byte| *byte == b'\n').unwrap();
        let (version, record) = value.split_at(line);
        let version: u64 = std::str::from_utf8(version).unwrap().parse().unwrap();
        let record = std::str::from_utf8(&record[2..]).unwrap();
        [format!("{}\n", version + 1).as_bytes(), &[format << 1], change(record).as_bytes()].concat()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_of_another_version_goes_on_and_one_that_is_too_new_is_not_lost() {
    let Some(server) = RedisServer::start().await else { return };
    let notes = Server::new("notes", "1");
    let http = notes.http().unwrap().shared(server.connect(&RedisOptions::default()).await.unwrap());
    let opened = post(&http, None, INITIALIZE).await;
    let session = opened.headers()[SESSION].to_str().unwrap().to_owned();
    let key = format!("pintle:s:{{{session}}}");
    // A later version has a member that this one does not know.
    let more = |record: &str| record.replacen('{', r#"{"later":{"x":[1]},"#, 1);
    for format in [0, 1] {
        server.change(&key, rewritten(format, more)).await;
        assert_eq!(post(&http, Some(&session), PING).await.status(), 200, "format {format}");
    }
    server.change(&key, rewritten(2, str::to_owned)).await;
    let refused = post(&http, Some(&session), PING).await;
    assert_eq!(refused.status(), 503, "it is there, and a process of the later version has it");
    assert!(refused.headers().contains_key("retry-after"));
    server.change(&key, rewritten(0, str::to_owned)).await;
    assert_eq!(post(&http, Some(&session), PING).await.status(), 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_of_a_later_format_is_an_error_and_not_absent() {
    let Some(server) = RedisServer::start().await else { return };
    let tasks = server.connect(&RedisOptions::default()).await.unwrap().tasks();
    let client = redis::Client::open(server.url()).unwrap();
    let mut connection = connected(&client).await.unwrap();
    for (key, value) in [("meta", "2\nunknown"), ("body", "unknown")] {
        let key = format!("pintle:t:{{tasks}}:{key}");
        let mut write = redis::pipe();
        write.cmd("HSET").arg(&key).arg("later").arg(value).ignore();
        write.cmd("EXPIRE").arg(&key).arg(600).ignore();
        write.query_async::<()>(&mut connection).await.unwrap();
    }
    let error = tasks.get("later").await.unwrap_err();
    assert!(error.to_string().contains("has format 2"), "{error}");
    let mut task = pintle_tasks::StoredTask::new("later", "ann", 4_000_000_000_000, Vec::new());
    task.version = 1;
    let error = tasks.update(&task, &pintle_tasks::TaskQuota::default()).await.unwrap_err();
    assert!(error.to_string().contains("has format 2"), "{error}");
    assert!(tasks.get("unknown").await.unwrap().is_none());
}

/// What earlier versions have written: the session is read unchanged, and what they know to be used is not used again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_of_earlier_versions_are_read_or_refused_and_never_absent() {
    let Some(server) = RedisServer::start().await else { return };
    let client = redis::Client::open(server.url()).unwrap();
    let mut connection = connected(&client).await.unwrap();
    let keys = StateKeys::from([7; 32]);
    let record = br#"{"principal":"ann","server":"notes","revision":"2025-11-25"}"#;
    let sealed = [&b"\x01"[..], &keys.seal_value("pintle:s:{s1}", record).unwrap()].concat();
    let mut write = redis::pipe();
    write.cmd("SET").arg("pintle:s:{s1}").arg([&b"12\n"[..], &sealed].concat()).arg("EX").arg(600).ignore();
    write.cmd("SET").arg("pintle:n:0707").arg("").arg("EX").arg(600).ignore();
    write.cmd("HSET").arg("pintle:u:0808").arg("p").arg("replied").ignore();
    write.cmd("EXPIRE").arg("pintle:u:0808").arg(600).ignore();
    write.query_async::<()>(&mut connection).await.unwrap();

    let redis = server.connect(&RedisOptions::default().seal(keys)).await.unwrap();
    let session = Key::new(Space::Session, "s1");
    let found = redis.get(session, GetOptions::default()).await.unwrap();
    assert_eq!(found, Got::Value { version: 12, value: record.to_vec() });
    let life = Life::Idle(std::time::Duration::from_secs(60));
    assert_eq!(redis.put(session, Expected::Version(12), record, life).await.unwrap(), Put::Done(13));
    for (space, id) in [(Space::Nonce, "0707"), (Space::State, "0808")] {
        let put = redis.put(Key::new(space, id), Expected::Absent, b"", Life::Until(4_000_000_000_000)).await;
        assert_eq!(put.unwrap(), Put::Other, "{space:?}");
    }
    redis.get(Key::new(Space::State, "0808"), GetOptions::default()).await.unwrap_err();
}
