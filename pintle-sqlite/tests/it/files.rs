//! The file: its contract, its mode, and several connections to it.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    sync::atomic::{AtomicUsize, Ordering},
};

use pintle::tasks::{StoredTask, TaskQuota, TaskStore as _, Updated, kit};
use pintle_sqlite::SqliteTaskStore;
use tokio::task::JoinSet;

use crate::folder::Folder;

const LATE: u64 = 4_000_000_000_000;

#[tokio::test]
async fn the_store_keeps_the_contract() {
    let (folder, number) = (Folder::new(), AtomicUsize::new(0));
    let fresh = || folder.file(&format!("{}.db", number.fetch_add(1, Ordering::Relaxed)));
    kit::check(|| async { SqliteTaskStore::open(fresh()) }).await.unwrap();
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
