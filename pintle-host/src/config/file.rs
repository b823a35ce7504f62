use std::{
    collections::BTreeMap,
    fs,
    io::Read as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    ConfigError, ConfigErrorKind, ServerEntry, Source, read_entry,
    template::Syntax,
    tree::{self, Node, NodeValue, TableMember},
};

/// The maximum size of a file. Claude Code keeps histories in the file of its servers.
const MAX_BYTES: u64 = 32 << 20;
/// The maximum number of servers in a file.
const MAX_SERVERS: usize = 1000;

/// A configuration file of a host: the servers that it names.
///
/// The formats of Claude Desktop and Claude Code, Cursor, VS Code, Codex, Zed, Windsurf, Cline, Gemini CLI, Copilot CLI, Kiro,
/// OpenCode and the like are recognized by their contents. JSON may have comments and trailing commas.
///
/// ```
/// use pintle_host::config::{ConfigFile, Variables};
///
/// let file = ConfigFile::parse(
///     ".mcp.json",
///     r#"{
///         "mcpServers": {
///             "git": {"command": "uvx", "args": ["mcp-server-git"]}, // a program to start
///             "docs": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
///         }
///     }"#,
/// )?;
/// let docs = file.server("docs").expect("it is there");
/// assert_eq!(docs.source.to_string(), ".mcp.json:4");
/// let error = docs.resolve(&Variables::none()).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "`.mcp.json`, line 4, server `docs`: the variable `TOKEN` is not set: set it, or write `${TOKEN:-a default}`",
/// );
/// # Ok::<_, pintle_host::config::ConfigError>(())
/// ```
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct ConfigFile {
    /// The path, as it was given.
    pub path: Arc<PathBuf>,
    /// The dialect; `None` if the file names no servers.
    pub dialect: Option<Dialect>,
    /// The servers, in the order of the file. Those of a project have its folder: see [`servers_of`](Self::servers_of).
    pub servers: Vec<ServerEntry>,
    /// The entries that could not be read. They do not affect the others.
    pub rejected: Vec<ConfigError>,
    /// The values that the user has to be asked for: `inputs` of VS Code.
    pub inputs: Vec<Input>,
}

/// How a file names its servers.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Dialect {
    /// `mcpServers`: Claude, Cursor, Windsurf, Cline, Gemini CLI, Copilot CLI, Kiro and others.
    McpServers,
    /// `servers` and `inputs`: VS Code; in its settings below `mcp`.
    VsCode,
    /// `mcp_servers` in TOML: Codex.
    Codex,
    /// `context_servers`: Zed.
    Zed,
    /// `mcp`, with commands as lists: OpenCode.
    OpenCode,
    /// Entries without a member around them.
    Bare,
}

/// A value that the user has to be asked for.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Input {
    /// The id, as in `${input:id}`.
    pub id: String,
    /// The text to show.
    pub description: Option<String>,
    /// Whether the value must not be shown.
    pub secret: bool,
    /// The values to choose from, if there are some.
    pub options: Vec<String>,
}

impl ConfigFile {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// It cannot be read, is too large, or is not valid JSON or TOML. An invalid entry is not an error: see
    /// [`rejected`](Self::rejected).
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        Self::parse(path.as_ref(), &read_text(path.as_ref())?)
    }

    /// Parses the contents of a file. The path decides between JSON and TOML, and is for messages.
    ///
    /// # Errors
    ///
    /// The text is too large, or not valid JSON or TOML.
    pub fn parse(path: impl Into<PathBuf>, text: &str) -> Result<Self, ConfigError> {
        let path = Arc::new(path.into());
        if text.len() as u64 > MAX_BYTES {
            return Err(too_large(&path));
        }
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let is_toml = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml"));
        let root = if is_toml { parse_toml(&path, text)? } else { tree::parse_json(&path, text)? };
        let mut file = Self {
            dialect: None,
            servers: Vec::new(),
            rejected: Vec::new(),
            inputs: Vec::new(),
            path: path.clone(),
        };
        let Some(members) = root.table() else {
            let reason = format!("the file has to be an object, not {}", root.kind());
            return Err(ConfigError::file(&path, ConfigErrorKind::Invalid, reason));
        };
        if let Some((dialect, servers)) = find(&root, is_toml) {
            file.dialect = Some(dialect);
            file.add(dialect, servers, None)?;
        } else if let Some(member) = members.iter().find(|member| is_misspelt(&member.name, is_toml)) {
            let source = Source { file: path, line: member.line };
            let expected = if is_toml { "mcp_servers" } else { "mcpServers" };
            let reason = format!("`{}` is not read: write `{expected}`", member.name);
            return Err(ConfigError::at(&source, ConfigErrorKind::Invalid, reason));
        }
        for project in root.get("projects").and_then(Node::table).into_iter().flatten() {
            if let Some(servers) = project.node.get("mcpServers") {
                file.dialect = Some(Dialect::McpServers);
                file.add(Dialect::McpServers, servers, Some(&project.name))?;
            }
        }
        file.inputs = inputs(root.get("mcp").filter(|mcp| mcp.get("servers").is_some()).unwrap_or(&root));
        Ok(file)
    }

    /// A server that is not of one project only, by its name.
    pub fn server(&self, name: &str) -> Option<&ServerEntry> {
        self.servers.iter().find(|server| server.project.is_none() && server.name == name)
    }

    /// The servers for a project: those of the file, and in place of those with the same name the project's own.
    pub fn servers_of<'a>(&'a self, project: &str) -> impl Iterator<Item = &'a ServerEntry> {
        let mut named = BTreeMap::new();
        for (at, server) in self.servers.iter().enumerate() {
            if server.project.is_none() || server.project.as_deref() == Some(project) {
                // A project's own come later in the list.
                named.insert(server.name.as_str(), at);
            }
        }
        let mut chosen: Vec<usize> = named.into_values().collect();
        chosen.sort_unstable();
        chosen.into_iter().map(|at| &self.servers[at])
    }

    fn add(&mut self, dialect: Dialect, node: &Node, project: Option<&str>) -> Result<(), ConfigError> {
        let source = |line| Source { file: self.path.clone(), line };
        let Some(members) = node.table() else {
            let reason = format!("the servers have to be an object, not {}", node.kind());
            return Err(ConfigError::at(&source(node.line), ConfigErrorKind::Invalid, reason));
        };
        if self.servers.len() + self.rejected.len() + members.len() > MAX_SERVERS {
            let reason = format!("the file names more than {MAX_SERVERS} servers");
            return Err(ConfigError::at(&source(node.line), ConfigErrorKind::Limit, reason));
        }
        let syntax = match dialect {
            Dialect::Codex | Dialect::Zed => Syntax::Literal,
            Dialect::OpenCode => Syntax::Braces,
            _ => Syntax::Dollar,
        };
        let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
        for TableMember { name, line, node } in members {
            let source = Source { file: self.path.clone(), line: *line };
            if let Some(first) = lines.insert(name, *line) {
                let reason = format!("the file names this server in line {first} already");
                self.servers.retain(|server| server.name != *name || server.project.as_deref() != project);
                let error = ConfigError::at(&source, ConfigErrorKind::Invalid, reason);
                self.rejected.push(error.of_server(name));
                continue;
            }
            match read_entry::read(name, &source, node, syntax) {
                Ok(entry) => {
                    self.servers.push(ServerEntry { project: project.map(str::to_owned), ..entry });
                }
                Err(error) => self.rejected.push(error),
            }
        }
        Ok(())
    }
}

/// Reads the text of a configuration file, for [`ConfigFile::parse`]: to show or hash what is then used.
///
/// # Errors
///
/// It cannot be read, is not a file, or is too large.
pub fn read_text(path: impl AsRef<Path>) -> Result<String, ConfigError> {
    let path = path.as_ref();
    let shared = Arc::new(path.to_owned());
    let io = |error: std::io::Error| {
        let reason = format!("the file cannot be read: {error}");
        ConfigError::file(&shared, ConfigErrorKind::Io(error.kind()), reason)
    };
    // Opening a pipe would wait for its writer.
    if !fs::metadata(path).map_err(io)?.is_file() {
        let kind = ConfigErrorKind::Io(std::io::ErrorKind::InvalidInput);
        return Err(ConfigError::file(&shared, kind, "it is not a file"));
    }
    let mut text = String::new();
    let read = fs::File::open(path).map_err(io)?.take(MAX_BYTES + 1).read_to_string(&mut text);
    read.map_err(io)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(too_large(&shared));
    }
    Ok(text)
}

fn too_large(path: &Arc<PathBuf>) -> ConfigError {
    let reason = format!("the file is larger than {} MiB", MAX_BYTES >> 20);
    ConfigError::file(path, ConfigErrorKind::Limit, reason)
}

type Parser = fn(&Arc<PathBuf>, &str) -> Result<Node, ConfigError>;

/// The parser of TOML, in builds that have one.
const TOML: &[Parser] = &[
    #[cfg(feature = "toml")]
    tree::parse_toml,
];

fn parse_toml(path: &Arc<PathBuf>, text: &str) -> Result<Node, ConfigError> {
    let Some(parse) = TOML.first() else {
        let reason = "TOML needs the feature `toml` of `pintle-host`";
        return Err(ConfigError::file(path, ConfigErrorKind::Unsupported, reason));
    };
    parse(path, text)
}

/// The servers of a file.
fn find(root: &Node, is_toml: bool) -> Option<(Dialect, &Node)> {
    if is_toml {
        return Some((Dialect::Codex, root.get("mcp_servers")?));
    }
    if let Some(servers) = root.get("mcpServers") {
        return Some((Dialect::McpServers, servers));
    }
    if let Some(servers) = root.get("context_servers") {
        return Some((Dialect::Zed, servers));
    }
    if let Some(servers) = root.get("servers").filter(|servers| servers.table().is_some()) {
        return Some((Dialect::VsCode, servers));
    }
    if let Some(mcp) = root.get("mcp") {
        return match mcp.get("servers").filter(|servers| !is_entry(servers)) {
            Some(servers) => Some((Dialect::VsCode, servers)),
            None => {
                mcp.table()?.iter().any(|member| is_entry(&member.node)).then_some((Dialect::OpenCode, mcp))
            }
        };
    }
    let members = root.table()?;
    let bare = !members.is_empty() && members.iter().all(|member| is_entry(&member.node));
    bare.then_some((Dialect::Bare, root))
}

/// Whether this looks like the entry of a server.
fn is_entry(node: &Node) -> bool {
    ["command", "url", "serverUrl", "httpUrl", "baseUrl"].iter().any(|member| node.get(member).is_some())
}

/// Whether this was meant to be the member that holds the servers.
fn is_misspelt(name: &str, is_toml: bool) -> bool {
    let expected = if is_toml { "mcp_servers" } else { "mcpServers" };
    let plain = |name: &str| name.replace(['_', '-'], "").to_ascii_lowercase();
    name != expected && strsim::osa_distance(&plain(name), "mcpservers") <= 1
}

fn inputs(node: &Node) -> Vec<Input> {
    let Some(Node { value: NodeValue::List(inputs), .. }) = node.get("inputs") else { return Vec::new() };
    let text = |node: &Node, name: &str| node.get(name).and_then(Node::text).map(str::to_owned);
    let input = |node: &Node| {
        let options = match node.get("options").map(|node| &node.value) {
            Some(NodeValue::List(options)) => {
                options.iter().filter_map(|option| option.text().map(str::to_owned)).collect()
            }
            _ => Vec::new(),
        };
        let secret = matches!(node.get("password").map(|node| &node.value), Some(NodeValue::Bool(true)));
        Some(Input { id: text(node, "id")?, description: text(node, "description"), secret, options })
    };
    inputs.iter().take(MAX_SERVERS).filter_map(input).collect()
}
