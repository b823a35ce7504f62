//! Catalogues of servers in a file, so that a change is noticed.

mod changes;
pub(in crate::verbs) mod diff;

use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};

use clap::Args;
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value, json};

use super::catalogue::{ServerCatalogue, sorted};
use crate::{
    args::{HELP, TargetArgs, examples, quoted},
    failure::Failure,
    output::{Output, counted},
    targets::Endpoint,
};

/// The file, if none is named.
const FILE: &str = "mcp.lock";
/// The maximum size of a file.
const MAX_BYTES: u64 = 32 << 20;
const VERSION: u64 = 1;

/// Write what a server offers to a file, to notice changes
#[derive(Args, Debug)]
#[command(
    before_help = examples(&[
        ("pintle lock https://example.com/mcp", "write or update `mcp.lock`"),
        ("pintle lock --as git -- uvx mcp-server-git", "under a name"),
        ("pintle diff https://example.com/mcp", "compare: a change is exit code 6"),
    ]),
    help_template = HELP,
    override_usage = "pintle lock TARGET",
)]
pub(crate) struct LockArgs {
    #[command(flatten)]
    file: LockFileArgs,
    #[command(flatten)]
    pub(in crate::verbs) target: TargetArgs,
}

/// The file and the name of a server in it.
#[derive(Args, Debug)]
struct LockFileArgs {
    /// The file
    #[arg(long = "file", short = 'f', value_name = "FILE", default_value = FILE)]
    path: PathBuf,
    /// The name of the server in the file; by default the target
    #[arg(long = "as", value_name = "NAME")]
    name: Option<String>,
}

/// The file: catalogues by the name of their server.
struct LockFile {
    path: PathBuf,
    servers: Map<String, Value>,
}

pub(crate) async fn run(args: LockArgs, output: &Output) -> Result<(), Failure> {
    let LockArgs { file: LockFileArgs { path, name }, target } = args;
    let (endpoint, words) = Endpoint::take("lock", target)?;
    endpoint.no_more(&words, "lock")?;
    let mut file = LockFile::read(&path)?;
    let name = name.unwrap_or_else(|| endpoint.label());
    let catalogue = fetch(&endpoint, output).await?;
    let changes = match file.catalogue(&name) {
        Some(before) => changes::compare(before, &catalogue).len(),
        None => 0,
    };
    let fingerprint = fingerprint(&catalogue);
    let count = |kind: &str| catalogue.get(kind).and_then(Value::as_object).map_or(0, Map::len);
    let kinds = [("tool", "tools"), ("prompt", "prompts"), ("resource", "resources")];
    let summary = kinds.map(|(one, many)| counted(count(many), one, many)).join(", ");
    file.servers.insert(name.clone(), json!({ "sha256": fingerprint, "catalogue": catalogue }));
    file.write()?;
    let json =
        json!({ "file": path.to_string_lossy(), "name": name, "sha256": fingerprint, "changes": changes });
    output.result(&json, |text| {
        text.add(path.display()).add(": ").add(&name).add(": ").add(summary);
        if changes > 0 {
            text.add(", ").add(counted(changes, "change", "changes"));
        }
        text.end();
    })
}

async fn fetch(endpoint: &Endpoint, output: &Output) -> Result<Map<String, Value>, Failure> {
    let connection = endpoint.connect(&endpoint.client(output), output).await?;
    let catalogue = ServerCatalogue::fetch(&connection).await.map_err(|error| endpoint.explain(&error))?;
    connection.close().await;
    Ok(catalogue.canonical())
}

/// Returns the hash of a catalogue, whose members are sorted.
fn fingerprint(catalogue: &Map<String, Value>) -> String {
    let text = Value::Object(catalogue.clone()).to_string();
    digest(&SHA256, text.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl LockFile {
    /// Reads a file. One that does not exist has no servers.
    fn read(path: &Path) -> Result<Self, Failure> {
        let next = || format!("cat {}", quoted(&path.to_string_lossy()));
        let shown = path.display();
        let mut text = String::new();
        match fs::File::open(path) {
            Ok(file) => {
                let read = file.take(MAX_BYTES).read_to_string(&mut text);
                read.map_err(|error| Failure::usage(format!("`{shown}` cannot be read: {error}"), next()))?;
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self { path: path.to_owned(), servers: Map::new() });
            }
            Err(error) => return Err(Failure::usage(format!("`{shown}` cannot be read: {error}"), next())),
        }
        let invalid = || Failure::usage(format!("`{shown}` is not a lock file of this version"), next());
        let value: Value = serde_json::from_str(&text).map_err(|_| invalid())?;
        match (value["version"].as_u64(), value["servers"].as_object()) {
            (Some(VERSION), Some(servers)) => Ok(Self { path: path.to_owned(), servers: servers.clone() }),
            _ => Err(invalid()),
        }
    }

    /// Returns the catalogue of a server.
    fn catalogue(&self, name: &str) -> Option<&Map<String, Value>> {
        self.servers.get(name)?.get("catalogue")?.as_object()
    }

    /// Writes the file as a whole, with sorted members, one a line.
    fn write(self) -> Result<(), Failure> {
        let Self { path, servers } = self;
        let value = sorted(json!({ "version": VERSION, "servers": servers }));
        let text = serde_json::to_string_pretty(&value).map_err(|error| Failure::internal(&error))? + "\n";
        let mut new = path.file_name().unwrap_or_default().to_owned();
        new.push(".new");
        let new = path.with_file_name(new);
        fs::write(&new, text).and_then(|()| fs::rename(&new, &path)).map_err(|error| {
            let shown = path.display();
            Failure::usage(format!("`{shown}` cannot be written: {error}"), format!("ls -ld {shown}"))
        })
    }
}
