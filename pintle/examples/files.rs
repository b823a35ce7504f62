//! A server for the files in the client's roots: the folders that the user has opened in the host.
//!
//! Nothing outside of the roots is read, whatever path a model asks for and wherever a link leads. A client without roots gets
//! the folders of the command line.
//!
//! ```sh
//! cargo run --example files -- ~/projects/boat
//! ```

use std::{
    env, fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use pintle::{
    Server,
    server::{Cx, State, ToolError},
    uri::path_from_uri,
};
use tokio::task::spawn_blocking;

/// The folders for clients without roots.
type Fallback = Arc<[PathBuf]>;

/// List the files of a folder. Folders end with `/`.
#[pintle::tool(read_only, open_world = false)]
async fn list(
    cx: Cx,
    State(fallback): State<Fallback>,
    /// A folder, absolute or relative to the first root.
    #[arg(default = ".")]
    folder: String,
) -> Result<String, ToolError> {
    let roots = Roots::of(&cx, &fallback).await?;
    spawn_blocking(move || {
        let mut names = Vec::new();
        for entry in fs::read_dir(roots.resolve(&folder)?)? {
            let entry = entry?;
            let slash = if entry.file_type()?.is_dir() { "/" } else { "" };
            names.push(format!("{}{slash}", entry.file_name().to_string_lossy()));
        }
        names.sort();
        Ok(names.join("\n"))
    })
    .await?
}

/// Read a text file.
#[pintle::tool(read_only, open_world = false)]
async fn read(
    cx: Cx,
    State(fallback): State<Fallback>,
    path: String,
    /// The first line.
    #[arg(default = 1, minimum = 1)]
    from: usize,
    /// The number of lines.
    #[arg(default = 500, minimum = 1, maximum = 5000)]
    lines: usize,
) -> Result<String, ToolError> {
    let roots = Roots::of(&cx, &fallback).await?;
    spawn_blocking(move || {
        let file = roots.resolve(&path)?;
        // The model is told how to go on, instead of receiving more than it can read.
        if fs::metadata(&file)?.len() > 16 << 20 {
            return Err(ToolError::new(format!("`{path}` is larger than 16 MiB: search it in another way")));
        }
        let text = fs::read_to_string(file)?;
        Ok(text.lines().skip(from - 1).take(lines).collect::<Vec<_>>().join("\n"))
    })
    .await?
}

/// The folders that may be read, without links in their paths.
struct Roots(Vec<PathBuf>);

impl Roots {
    /// Asks the client. It is a question as any other: without a session, the handler runs again with the answer.
    async fn of(cx: &Cx, fallback: &Fallback) -> Result<Self, ToolError> {
        let folders: Vec<_> = match cx.can_list_roots() {
            true => cx.roots().await?.iter().filter_map(|root| path_from_uri(&root.uri).ok()).collect(),
            false => fallback.to_vec(),
        };
        let roots: Vec<_> = folders.iter().filter_map(|folder| fs::canonicalize(folder).ok()).collect();
        match roots.is_empty() {
            true => Err(ToolError::new("no folder is open: ask the user to open one")),
            false => Ok(Self(roots)),
        }
    }

    /// Returns the real path of a file. The path is resolved first, so that neither `..` nor a link leads out of the roots.
    fn resolve(&self, path: &str) -> Result<PathBuf, ToolError> {
        let outside = || ToolError::new(format!("`{path}` is not in a folder that the user has opened"));
        let first = self.0.first().ok_or_else(outside)?;
        let real = fs::canonicalize(first.join(Path::new(path)))
            // Whether a file outside exists is nobody's business either.
            .map_err(|_| ToolError::new(format!("there is no `{path}`: `list` shows what there is")))?;
        self.0.iter().any(|root| real.starts_with(root)).then_some(real).ok_or_else(outside)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> pintle::Result<()> {
    let fallback: Fallback = env::args_os().skip(1).map(PathBuf::from).collect();
    Server::new("files", "1.0.0").with_state(fallback).tools(pintle::tools![list, read]).serve_stdio().await
}
