//! What a client accepts of a server that does not send what it listed.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use pintle::{
    Client, Connection, Server,
    server::{Cx, method, resource},
    types::{
        RpcError,
        schema::{ReadResourceResult, ResourceContents},
    },
};
use pintle_skills::{SkillEntry, SkillError, SkillLimits, SkillReader, Skills};
use serde_json::{Value, json};

const URI: &str = "skill://pdf/SKILL.md";
const TEXT: &str = "---\nname: pdf\ndescription: Reads PDF.\nversion: 1.0\n---\n\nRead it.\n";

/// A server that lists `skills`, and whose `SKILL.md` is `text`. Reads are counted.
async fn connect(skills: Value, text: &'static str) -> (Connection, Arc<AtomicUsize>) {
    let reads = Arc::new(AtomicUsize::new(0));
    let counted = reads.clone();
    let server = Server::new("s", "1")
        .extension("io.modelcontextprotocol/skills", json!({}))
        .method(method("skills/list", move |_: Cx, _: Value| {
            let listed = json!({ "skills": skills });
            async { Ok::<_, RpcError>(listed) }
        }))
        .method(method("skills/get", |_: Cx, _: Value| async {
            let other = json!({"skill": {"uri": "skill://other/SKILL.md", "frontmatter": {}, "resources": "dynamic"}});
            Ok::<_, RpcError>(other)
        }))
        .resource(resource(URI, "pdf", move || {
            counted.fetch_add(1, Ordering::SeqCst);
            async move { text }
        }))
        .resource(resource("skill://pdf/more.md", "more", || async { "more" }));
    let connection = Client::new("c", "1").connect(server.in_process().unwrap()).await.unwrap();
    (connection, reads)
}

/// The honest entry of [`TEXT`].
async fn honest() -> Value {
    let server =
        Server::new("s", "1").with(Skills::from_files("skill://", [("pdf/SKILL.md", TEXT)]).unwrap());
    let connection = Client::new("c", "1").connect(server.in_process().unwrap()).await.unwrap();
    let listed = SkillReader::new(&connection).unwrap().list().await.unwrap();
    serde_json::to_value(&listed[0]).unwrap()
}

async fn first(reader: &SkillReader) -> SkillEntry {
    reader.list().await.unwrap().remove(0)
}

#[tokio::test]
async fn a_skill_that_is_what_was_listed_is_loaded_and_only_when_it_is_wanted() {
    let (connection, reads) = connect(json!([honest().await]), TEXT).await;
    let reader = SkillReader::new(&connection).unwrap();
    let entry = first(&reader).await;
    assert_eq!(reads.load(Ordering::SeqCst), 0);
    let skill = reader.load(&entry).await.unwrap();
    assert_eq!((skill.instructions(), skill.text()), ("Read it.\n", TEXT));
    assert_eq!(reads.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_digest_a_size_or_a_front_matter_that_does_not_match_is_an_error() {
    let entry = honest().await;
    let edited = |pointer: &str, value: Value| {
        let mut entry = entry.clone();
        *entry.pointer_mut(pointer).unwrap() = value;
        entry
    };
    let zeros = format!("sha256:{}", "0".repeat(64));
    let upper = entry["resources"][0]["digest"].as_str().unwrap().to_uppercase();
    for (listed, text, reason) in [
        (edited("/resources/0/digest", json!(zeros)), TEXT, "digest"),
        (edited("/resources/0/digest", json!(upper)), TEXT, "digest"),
        (edited("/resources/0/size", json!(1)), TEXT, "bytes"),
        // The digest is right, and the list lied.
        (edited("/frontmatter/description", json!("Harmless.")), TEXT, "`description`"),
        (edited("/frontmatter/version", json!("1.0")), TEXT, "`version`"),
        (edited("/frontmatter/name", json!("forms")), TEXT, "name"),
        (edited("/resources", json!([])), TEXT, "own `SKILL.md`"),
        (edited("/resources", json!(null)), TEXT, "neither"),
        (edited("/uri", json!("skill://pdf/other.md")), TEXT, "SKILL.md"),
        (edited("/uri", json!("skill://forms/SKILL.md")), TEXT, "that of its directory"),
        (entry.clone(), "---\nname: pdf\ndescription: Reads PDF.\nversion: 1.0\n---\n\nRead me.\n", "digest"),
    ] {
        let (connection, _) = connect(json!([listed]), text).await;
        let reader = SkillReader::new(&connection).unwrap();
        let refused = reader.load(&first(&reader).await).await.unwrap_err();
        assert!(matches!(refused, SkillError::Unverified { .. }), "{reason}: {refused}");
        assert!(refused.to_string().contains(reason), "{reason}: {refused}");
    }
    // A number is the same number however it is written.
    let (connection, _) = connect(json!([edited("/frontmatter/version", json!(1))]), TEXT).await;
    let reader = SkillReader::new(&connection).unwrap();
    reader.load(&first(&reader).await).await.unwrap();
}

#[tokio::test]
async fn a_file_that_is_not_listed_is_not_requested() {
    let (connection, reads) = connect(json!([honest().await]), TEXT).await;
    let reader = SkillReader::new(&connection).unwrap();
    let entry = first(&reader).await;
    let refused = reader.read(&entry, "skill://pdf/more.md").await.unwrap_err();
    assert!(refused.to_string().contains("does not list"), "{refused}");
    assert_eq!(reads.load(Ordering::SeqCst), 0);
    assert!(matches!(reader.directory("skill://pdf").await, Err(SkillError::Unsupported { .. })));
    let other = reader.get(URI).await.unwrap_err();
    assert!(other.to_string().contains("skill://other"), "{other}");
}

/// Nothing that is listed twice, returned for another file, or not text is used; an entry that cannot be read is left out.
#[tokio::test]
async fn what_is_ambiguous_is_not_used() {
    let mut twice = honest().await;
    twice["resources"] = json!([twice["resources"][0], twice["resources"][0]]);
    let (connection, _) = connect(json!([{"uri": 1}, twice]), TEXT).await;
    let reader = SkillReader::new(&connection).unwrap();
    let listed = reader.list().await.unwrap();
    assert_eq!(listed.len(), 1, "{listed:?}");
    let refused = reader.load(&listed[0]).await.unwrap_err();
    assert!(refused.to_string().contains("lists a file twice"), "{refused}");

    let entry = honest().await;
    let two = |other: &'static str| {
        let contents = move || {
            let one = ResourceContents::text(URI, TEXT);
            let result = ReadResourceResult::new(vec![one, ResourceContents::text(other, "more")]);
            async { result }
        };
        let listed = json!({"skills": [entry]});
        Server::new("s", "1")
            .extension("io.modelcontextprotocol/skills", json!({}))
            .method(method("skills/list", move |_: Cx, _: Value| {
                let listed = listed.clone();
                async { Ok::<_, RpcError>(listed) }
            }))
            .resource(resource(URI, "pdf", contents))
    };
    for (other, is_loaded) in [("skill://pdf/other.md", true), (URI, false)] {
        let connection = Client::new("c", "1").connect(two(other).in_process().unwrap()).await.unwrap();
        let reader = SkillReader::new(&connection).unwrap();
        let loaded = reader.load(&first(&reader).await).await;
        assert_eq!(loaded.is_ok(), is_loaded, "{other}: {loaded:?}");
    }
}

#[tokio::test]
async fn generated_files_are_read_only_if_the_host_allows_it() {
    let mut entry = honest().await;
    entry["resources"] = json!("dynamic");
    let (connection, _) = connect(json!([entry]), TEXT).await;
    let reader = SkillReader::new(&connection).unwrap();
    let entry = first(&reader).await;
    assert_eq!(entry.fingerprint(), None);
    assert!(matches!(reader.load(&entry).await, Err(SkillError::Dynamic { .. })));
    let reader = reader.allow_dynamic();
    assert_eq!(reader.load(&entry).await.unwrap().instructions(), "Read it.\n");
    assert_eq!(reader.read(&entry, "skill://pdf/more.md").await.unwrap(), b"more");
    // What a skill causes to be read stays in its directory.
    for uri in ["skill://pdf2/more.md", "skill://pdf/../x.md", "note://secret"] {
        assert!(matches!(reader.read(&entry, uri).await, Err(SkillError::Unverified { .. })), "{uri}");
    }
}

#[tokio::test]
async fn lists_and_skills_are_bounded() {
    let entry = honest().await;
    let (connection, _) = connect(json!(vec![entry; 5]), TEXT).await;
    let reader = SkillReader::new(&connection).unwrap();
    let mut limits = SkillLimits::default();
    (limits.skills, limits.bytes) = (4, 10);
    let small = reader.clone().limits(limits);
    assert!(matches!(small.list().await, Err(SkillError::TooLarge { .. })));
    assert!(matches!(small.load(&first(&reader).await).await, Err(SkillError::TooLarge { .. })));

    // The files of a skill, as they are listed and as they are read.
    let mut limits = SkillLimits::default();
    limits.files = 0;
    let refused = reader.clone().limits(limits).load(&first(&reader).await).await.unwrap_err();
    assert!(matches!(&refused, SkillError::TooLarge { reason } if reason.contains("1 files")), "{refused}");
    let mut generated = honest().await;
    generated["resources"] = json!("dynamic");
    let (connection, _) = connect(json!([generated]), TEXT).await;
    let dynamic = SkillReader::new(&connection).unwrap().allow_dynamic();
    let mut limits = SkillLimits::default();
    limits.bytes = 10;
    let refused = dynamic.clone().limits(limits).load(&first(&dynamic).await).await.unwrap_err();
    assert!(matches!(refused, SkillError::TooLarge { .. }), "{refused}");

    // The bytes of a skill as they are listed: nothing is read of one that has too many.
    let mut large = honest().await;
    let size = large["resources"][0]["size"].as_u64().unwrap();
    large["resources"]
        .as_array_mut()
        .unwrap()
        .push(json!({"uri": "skill://pdf/more.md", "mimeType": "text/markdown",
        "size": 1000, "digest": format!("sha256:{}", "0".repeat(64))}));
    let (connection, reads) = connect(json!([large]), TEXT).await;
    let reader = SkillReader::new(&connection).unwrap();
    for (bytes, is_read) in [(size + 999, false), (size + 1000, true)] {
        let mut limits = SkillLimits::default();
        limits.bytes = bytes;
        let loaded = reader.clone().limits(limits).load(&first(&reader).await).await;
        assert_eq!(loaded.is_ok(), is_read, "{loaded:?}");
        assert_eq!(matches!(loaded, Err(SkillError::TooLarge { .. })), !is_read);
        assert_eq!(reads.load(Ordering::SeqCst), usize::from(is_read));
    }

    // A list without an end.
    let server = Server::new("s", "1")
        .extension("io.modelcontextprotocol/skills", json!({}))
        .method(method("skills/list", |_: Cx, _: Value| async {
            Ok::<_, RpcError>(json!({"skills": [], "nextCursor": "again"}))
        }));
    let connection = Client::new("c", "1").connect(server.in_process().unwrap()).await.unwrap();
    let endless = SkillReader::new(&connection).unwrap().list().await;
    assert!(matches!(endless, Err(SkillError::TooLarge { .. })), "{endless:?}");
    let none = Client::new("c", "1").connect(Server::new("s", "1").in_process().unwrap()).await.unwrap();
    assert!(matches!(SkillReader::new(&none), Err(SkillError::Unsupported { .. })));
}

#[tokio::test]
async fn directories_are_bounded() {
    let server = |page: usize, is_endless: bool| {
        Server::new("s", "1")
            .extension("io.modelcontextprotocol/skills", json!({"directoryRead": true}))
            .method(method("resources/directory/read", move |_: Cx, _: Value| async move {
                let children: Vec<_> =
                    (0..page).map(|n| json!({"uri": format!("skill://pdf/{n}"), "name": "n"})).collect();
                let cursor = is_endless.then_some("again");
                Ok::<_, RpcError>(json!({"resources": children, "nextCursor": cursor}))
            }))
    };
    for (page, is_endless, is_listed) in
        [(3, false, true), (4, false, false), (2, true, false), (0, true, false)]
    {
        let connection =
            Client::new("c", "1").connect(server(page, is_endless).in_process().unwrap()).await.unwrap();
        let mut limits = SkillLimits::default();
        limits.files = 3;
        let reader = SkillReader::new(&connection).unwrap().limits(limits);
        let listed = reader.directory("skill://pdf").await;
        assert_eq!(listed.is_ok(), is_listed, "{listed:?}");
        assert_eq!(matches!(listed, Err(SkillError::TooLarge { .. })), !is_listed);
        connection.close().await;
    }
}
