//! The file: its contract, its mode, and several connections to it.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    sync::atomic::{AtomicUsize, Ordering},
};

use pintle_sqlite::SqliteTaskStore;
use pintle_tasks::{StoredTask, TaskQuota, TaskStore as _, Updated};
use pintle_testing::kits;
use tokio::task::JoinSet;

use crate::folder::Folder;

const LATE: u64 = 4_000_000_000_000;

#[tokio::test]
async fn the_store_keeps_the_contract() {
    let (folder, number) = (Folder::new(), AtomicUsize::new(0));
    let fresh = || folder.file(&format!("{}.db", number.fetch_add(1, Ordering::Relaxed)));
    kits::tasks::check(async || SqliteTaskStore::open(fresh()).map(kits::two_handles)).await.unwrap();
}

#[tokio::test]
async fn tasks_and_their_limits_are_there_when_the_file_is_opened_again() {
    let (folder, mut quota) = (Folder::new(), TaskQuota::default());
    quota.account_tasks = 1;
    let task = StoredTask::new("a", "ann", LATE, vec![0, 1, 255]);
    let store = SqliteTaskStore::open(folder.file("tasks.db")).unwrap();
    assert!(store.create(&task, &quota).await.unwrap());
    drop(store);
    let store = SqliteTaskStore::open(folder.file("tasks.db")).unwrap();
    assert_eq!(store.get("a").await.unwrap(), Some(task));
    let another = StoredTask::new("b", "ann", LATE, Vec::new());
    assert!(!store.create(&another, &quota).await.unwrap(), "the account is full");
    assert_eq!(store.remove_expired(LATE).await.unwrap(), None);
    assert!(store.create(&another, &quota).await.unwrap());
}

#[tokio::test]
async fn nobody_else_can_read_the_files() {
    let folder = Folder::new();
    let store = SqliteTaskStore::open(folder.file("tasks.db")).unwrap();
    store.create(&StoredTask::new("a", "ann", LATE, Vec::new()), &TaskQuota::default()).await.unwrap();
    for name in ["tasks.db", "tasks.db-wal", "tasks.db-shm"] {
        let mode = fs::metadata(folder.file(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{name}");
    }
    // A file that others can read is not used.
    fs::write(folder.file("open.db"), "").unwrap();
    fs::set_permissions(folder.file("open.db"), fs::Permissions::from_mode(0o644)).unwrap();
    let refused = SqliteTaskStore::open(folder.file("open.db")).unwrap_err().to_string();
    assert!(refused.contains("mode 644") && refused.ends_with("set it to 600"), "{refused}");
}

#[tokio::test]
async fn what_is_no_file_of_tasks_is_refused() {
    let folder = Folder::new();
    let path = folder.file("text.db");
    fs::write(&path, "This is no database, whatever its name says. ".repeat(100)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let refused = SqliteTaskStore::open(&path).unwrap_err().to_string();
    assert!(refused.starts_with("the file of tasks: "), "{refused}");
}

/// As many connections as processes would have write at the same time: each waits for its turn, and none is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_connections_write_at_the_same_time() {
    let folder = Folder::new();
    let quota = TaskQuota::default();
    let stores: Vec<_> = (0..4).map(|_| SqliteTaskStore::open(folder.file("tasks.db")).unwrap()).collect();
    let mut writers = JoinSet::new();
    for (at, store) in stores.iter().enumerate() {
        let store = store.clone();
        writers.spawn(async move {
            for number in 0..16 {
                let task = StoredTask::new(format!("{at}-{number}"), "ann", LATE, vec![7; 100]);
                assert!(store.create(&task, &quota).await.unwrap());
            }
        });
    }
    writers.join_all().await;
    assert_eq!(stores[0].list("ann", None, 1_000).await.unwrap().len(), 64);
    // Of many updates of one version, one is stored.
    let mut updates = JoinSet::new();
    for (at, store) in stores.iter().enumerate() {
        let store = store.clone();
        let mut task = StoredTask::new("0-0", "ann", LATE, vec![at.try_into().unwrap()]);
        task.version = 1;
        updates.spawn(async move { store.update(&task, &quota).await.unwrap() });
    }
    let stored = updates.join_all().await.into_iter().filter(|updated| *updated == Updated::Stored).count();
    assert_eq!(stored, 1);
}

/// Changes a file as a person with the `sqlite3` command could.
fn tamper(path: &std::path::Path, statement: &str) {
    let changed = rusqlite::Connection::open(path).unwrap().execute(statement, []).unwrap();
    assert_ne!(changed, 0, "{statement}");
}

#[tokio::test]
async fn a_row_that_cannot_be_read_hides_no_other() {
    let (folder, quota) = (Folder::new(), TaskQuota::default());
    let path = folder.file("tasks.db");
    let store = SqliteTaskStore::open(&path).unwrap();
    for id in ["a", "b", "c", "d"] {
        let mut task = StoredTask::new(id, "ann", 2_000, vec![1]);
        task.holder = Some("gone".to_owned());
        assert!(store.create(&task, &quota).await.unwrap());
    }
    tamper(&path, "UPDATE task SET body = 'a text' WHERE id = 'a'");
    tamper(&path, "UPDATE task SET account = x'ff', bytes = 'many' WHERE id = 'b'");
    tamper(&path, "UPDATE task SET version = 'x' WHERE id = 'c'");
    let ids = |tasks: Vec<StoredTask>| tasks.into_iter().map(|task| task.id).collect::<Vec<_>>();
    assert_eq!(ids(store.list("ann", None, 1).await.unwrap()), ["d"]);
    assert_eq!(ids(store.orphans(1_000, 64).await.unwrap()), ["d"]);
    // However many there are before it.
    let mut found = Vec::new();
    for _ in 0..1_000 {
        found.extend(ids(store.orphans(1_000, 1).await.unwrap()));
    }
    assert!(found.iter().all(|id| id == "d") && !found.is_empty(), "{found:?}");
    assert!(store.get("a").await.is_err());
    tamper(&path, "UPDATE task SET unread = 1, id = CASE id WHEN 'a' THEN x'61' ELSE id END");
    assert_eq!(store.unread("gone", 64).await.unwrap().len(), 3);
    // They expire as others do, and their place is free again.
    assert_eq!(store.remove_expired(3_000).await.unwrap(), None);
    assert_eq!(ids(store.list("ann", None, 10).await.unwrap()), [""; 0]);
    let left = rusqlite::Connection::open(&path).unwrap();
    let (rows, used): (i64, i64) = left
        .query_row("SELECT (SELECT COUNT(*) FROM task), tasks FROM usage WHERE account = ''", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap();
    assert_eq!((rows, used), (0, 0));
}

#[tokio::test]
async fn a_file_that_others_can_replace_is_not_used() {
    let folder = Folder::new();
    let refused = |path| SqliteTaskStore::open(path).unwrap_err().to_string();
    drop(SqliteTaskStore::open(folder.file("tasks.db")).unwrap());
    std::os::unix::fs::symlink(folder.file("tasks.db"), folder.file("link.db")).unwrap();
    let link = refused(folder.file("link.db"));
    assert!(link.contains("is not a regular file"), "{link}");
    // Nor is one created where a link points to.
    std::os::unix::fs::symlink(folder.file("elsewhere.db"), folder.file("dangling.db")).unwrap();
    let dangling = refused(folder.file("dangling.db"));
    assert!(
        dangling.contains("is not a regular file") && !folder.file("elsewhere.db").exists(),
        "{dangling}"
    );
    // A log beside it would be part of it.
    let shared = folder.file("shared");
    fs::create_dir(&shared).unwrap();
    for mode in [0o777, 0o1777] {
        fs::set_permissions(&shared, fs::Permissions::from_mode(mode)).unwrap();
        let open = refused(shared.join("tasks.db"));
        assert!(open.contains(&format!("mode {mode:o}")) && !shared.join("tasks.db").exists(), "{open}");
    }
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o755)).unwrap();
    drop(SqliteTaskStore::open(shared.join("tasks.db")).unwrap());
    // The directory itself may be reached by a link.
    std::os::unix::fs::symlink(&shared, folder.file("by-link")).unwrap();
    drop(SqliteTaskStore::open(folder.file("by-link/tasks.db")).unwrap());
}
