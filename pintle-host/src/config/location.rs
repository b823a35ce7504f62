use std::{
    env, fmt,
    path::{Path, PathBuf},
};

/// A program that has servers configured.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[expect(missing_docs, reason = "they are names of products")]
pub enum Host {
    ClaudeCode,
    ClaudeDesktop,
    Cline,
    Codex,
    CopilotCli,
    Cursor,
    GeminiCli,
    Inspector,
    Kiro,
    LmStudio,
    Mcporter,
    OpenCode,
    RooCode,
    VsCode,
    Windsurf,
    Zed,
    /// `mcp.json` of a project, which no host claims.
    Project,
}

/// The owner of the servers that a file names.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Scope {
    /// Those of a project. Its file comes with the project: ask the user before a program of it is started.
    Project,
    /// Those of the user.
    User,
}

/// An operating system, as far as it decides where files are.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Platform {
    /// Linux and other systems with XDG directories.
    Linux,
    /// macOS.
    MacOs,
    /// Windows.
    Windows,
}

/// The directories that files of hosts are in.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Directories {
    /// The system.
    pub platform: Platform,
    /// The user's home directory.
    pub home: PathBuf,
    /// The directory of programs' settings: `$XDG_CONFIG_HOME` or `~/.config`, `~/Library/Application Support`, `%APPDATA%`.
    pub settings: PathBuf,
    /// The project; without one there are no files of projects.
    pub project: Option<PathBuf>,
}

/// A file that a host reads, if it exists.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Location {
    /// The host.
    pub host: Host,
    /// The owner of the servers.
    pub scope: Scope,
    /// The file.
    pub path: PathBuf,
}

#[derive(Clone, Copy)]
enum Base {
    Project,
    Home,
    Settings,
    /// `~/.config` on macOS too.
    Xdg,
}

/// The files, in the order in which hosts are listed. Paths have forward slashes here.
const FILES: &[(Host, Base, &str)] = &[
    (Host::ClaudeCode, Base::Project, ".mcp.json"),
    (Host::ClaudeCode, Base::Home, ".claude.json"),
    (Host::ClaudeDesktop, Base::Settings, "Claude/claude_desktop_config.json"),
    (
        Host::Cline,
        Base::Settings,
        "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
    ),
    (Host::Codex, Base::Project, ".codex/config.toml"),
    (Host::Codex, Base::Home, ".codex/config.toml"),
    (Host::CopilotCli, Base::Home, ".copilot/mcp-config.json"),
    (Host::Cursor, Base::Project, ".cursor/mcp.json"),
    (Host::Cursor, Base::Home, ".cursor/mcp.json"),
    (Host::GeminiCli, Base::Project, ".gemini/settings.json"),
    (Host::GeminiCli, Base::Home, ".gemini/settings.json"),
    (Host::Inspector, Base::Home, ".mcp-inspector/mcp.json"),
    (Host::Kiro, Base::Project, ".kiro/settings/mcp.json"),
    (Host::Kiro, Base::Home, ".kiro/settings/mcp.json"),
    (Host::LmStudio, Base::Home, ".lmstudio/mcp.json"),
    (Host::Mcporter, Base::Home, ".mcporter/mcporter.json"),
    (Host::OpenCode, Base::Project, "opencode.json"),
    (Host::OpenCode, Base::Project, "opencode.jsonc"),
    (Host::OpenCode, Base::Xdg, "opencode/opencode.json"),
    (Host::OpenCode, Base::Xdg, "opencode/opencode.jsonc"),
    (Host::RooCode, Base::Project, ".roo/mcp.json"),
    (Host::VsCode, Base::Project, ".vscode/mcp.json"),
    (Host::VsCode, Base::Settings, "Code/User/mcp.json"),
    (Host::Windsurf, Base::Home, ".codeium/windsurf/mcp_config.json"),
    (Host::Zed, Base::Project, ".zed/settings.json"),
    (Host::Zed, Base::Xdg, "zed/settings.json"),
    (Host::Project, Base::Project, "mcp.json"),
];

/// Where hosts keep the configuration of their servers. Nothing is looked at: the files may not exist.
///
/// ```
/// use pintle_host::config::{ConfigFile, Directories, locations};
///
/// for location in locations(&Directories::of_process().project(".")) {
///     if let Ok(file) = ConfigFile::read(&location.path) {
///         println!("{}: {} servers in {}", location.host, file.servers.len(), location.path.display());
///     }
/// }
/// ```
pub fn locations(directories: &Directories) -> Vec<Location> {
    let Directories { platform, home, settings, project } = directories;
    let of_file = |(host, base, file): &(Host, Base, &str)| {
        let scope = if matches!(base, Base::Project) { Scope::Project } else { Scope::User };
        let path = match (base, platform) {
            (Base::Project, _) => platform.join(project.as_deref()?, file),
            (Base::Home, _) => platform.join(home, file),
            (Base::Xdg, Platform::MacOs) => platform.join(home, &format!(".config/{file}")),
            // The only one with another name there.
            (Base::Xdg, Platform::Windows) if *host == Host::Zed => {
                platform.join(settings, &file.replacen('z', "Z", 1))
            }
            (Base::Xdg, Platform::Windows) => platform.join(home, &format!(".config/{file}")),
            (Base::Settings | Base::Xdg, _) => platform.join(settings, file),
        };
        Some(Location { host: *host, scope, path })
    };
    FILES.iter().filter_map(of_file).collect()
}

impl Platform {
    /// The system that this program was built for.
    pub fn current() -> Self {
        match env::consts::OS {
            "windows" => Self::Windows,
            "macos" => Self::MacOs,
            _ => Self::Linux,
        }
    }

    /// Joins paths of this system, which may be another than the program runs on.
    fn join(self, base: &Path, file: &str) -> PathBuf {
        let (separator, file) = match self {
            Self::Windows => ("\\", file.replace('/', "\\")),
            _ => ("/", file.to_owned()),
        };
        let base = base.to_string_lossy();
        [base.trim_end_matches(['/', '\\']), separator, &file].concat().into()
    }
}

impl Directories {
    /// The usual directories below a home directory.
    pub fn below(platform: Platform, home: impl Into<PathBuf>) -> Self {
        let home = home.into();
        let settings = match platform {
            Platform::Linux => ".config",
            Platform::MacOs => "Library/Application Support",
            Platform::Windows => "AppData/Roaming",
        };
        Self { settings: platform.join(&home, settings), platform, home, project: None }
    }

    /// The directories of this process's user, as its environment says.
    pub fn of_process() -> Self {
        let platform = Platform::current();
        let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let (home, settings) = match platform {
            Platform::Windows => ("USERPROFILE", variable("APPDATA")),
            Platform::MacOs => ("HOME", None),
            Platform::Linux => ("HOME", variable("XDG_CONFIG_HOME").filter(|path| path.is_absolute())),
        };
        let directories = Self::below(platform, variable(home).unwrap_or_default());
        Self { settings: settings.unwrap_or(directories.settings.clone()), ..directories }
    }

    /// Sets the project.
    pub fn project(mut self, folder: impl Into<PathBuf>) -> Self {
        self.project = Some(folder.into());
        self
    }
}

/// The hosts with the names that commands have for them.
const HOSTS: &[(Host, &str)] = &[
    (Host::ClaudeCode, "claude-code"),
    (Host::ClaudeDesktop, "claude-desktop"),
    (Host::Cline, "cline"),
    (Host::Codex, "codex"),
    (Host::CopilotCli, "copilot-cli"),
    (Host::Cursor, "cursor"),
    (Host::GeminiCli, "gemini-cli"),
    (Host::Inspector, "inspector"),
    (Host::Kiro, "kiro"),
    (Host::LmStudio, "lm-studio"),
    (Host::Mcporter, "mcporter"),
    (Host::OpenCode, "opencode"),
    (Host::RooCode, "roo-code"),
    (Host::VsCode, "vscode"),
    (Host::Windsurf, "windsurf"),
    (Host::Zed, "zed"),
    (Host::Project, "project"),
];

impl Host {
    /// All hosts.
    pub fn all() -> impl Iterator<Item = Self> {
        HOSTS.iter().map(|(host, _)| *host)
    }

    /// The name that command lines have for it, such as `claude-code`.
    pub fn id(self) -> &'static str {
        HOSTS.iter().find(|(host, _)| *host == self).map_or("project", |(_, id)| id)
    }

    /// The host with this [`id`](Self::id).
    pub fn from_id(id: &str) -> Option<Self> {
        HOSTS.iter().find(|(_, known)| *known == id).map(|(host, _)| *host)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ClaudeCode => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Cline => "Cline",
            Self::Codex => "Codex",
            Self::CopilotCli => "Copilot CLI",
            Self::Cursor => "Cursor",
            Self::GeminiCli => "Gemini CLI",
            Self::Inspector => "MCP Inspector",
            Self::Kiro => "Kiro",
            Self::LmStudio => "LM Studio",
            Self::Mcporter => "mcporter",
            Self::OpenCode => "OpenCode",
            Self::RooCode => "Roo Code",
            Self::VsCode => "VS Code",
            Self::Windsurf => "Windsurf",
            Self::Zed => "Zed",
            Self::Project => "project",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(platform: Platform, home: &str, project: &str, host: Host) -> Vec<String> {
        let directories = Directories::below(platform, home).project(project);
        let of_host = locations(&directories).into_iter().filter(|location| location.host == host);
        of_host.map(|location| location.path.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn where_hosts_keep_their_files() {
        let table: &[(Host, [&[&str]; 3])] = &[
            (
                Host::ClaudeDesktop,
                [
                    &["/ada/.config/Claude/claude_desktop_config.json"],
                    &["/ada/Library/Application Support/Claude/claude_desktop_config.json"],
                    &[r"C:\ada\AppData\Roaming\Claude\claude_desktop_config.json"],
                ],
            ),
            (
                Host::ClaudeCode,
                [
                    &["/srv/shop/.mcp.json", "/ada/.claude.json"],
                    &["/srv/shop/.mcp.json", "/ada/.claude.json"],
                    &[r"C:\shop\.mcp.json", r"C:\ada\.claude.json"],
                ],
            ),
            (
                Host::VsCode,
                [
                    &["/srv/shop/.vscode/mcp.json", "/ada/.config/Code/User/mcp.json"],
                    &["/srv/shop/.vscode/mcp.json", "/ada/Library/Application Support/Code/User/mcp.json"],
                    &[r"C:\shop\.vscode\mcp.json", r"C:\ada\AppData\Roaming\Code\User\mcp.json"],
                ],
            ),
            (
                Host::Zed,
                [
                    &["/srv/shop/.zed/settings.json", "/ada/.config/zed/settings.json"],
                    &["/srv/shop/.zed/settings.json", "/ada/.config/zed/settings.json"],
                    &[r"C:\shop\.zed\settings.json", r"C:\ada\AppData\Roaming\Zed\settings.json"],
                ],
            ),
            (
                Host::Cline,
                [
                    &[
                        "/ada/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
                    ],
                    &[
                        "/ada/Library/Application Support/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
                    ],
                    &[
                        r"C:\ada\AppData\Roaming\Code\User\globalStorage\saoudrizwan.claude-dev\settings\cline_mcp_settings.json",
                    ],
                ],
            ),
            (
                Host::Codex,
                [
                    &["/srv/shop/.codex/config.toml", "/ada/.codex/config.toml"],
                    &["/srv/shop/.codex/config.toml", "/ada/.codex/config.toml"],
                    &[r"C:\shop\.codex\config.toml", r"C:\ada\.codex\config.toml"],
                ],
            ),
            (
                Host::Windsurf,
                [
                    &["/ada/.codeium/windsurf/mcp_config.json"],
                    &["/ada/.codeium/windsurf/mcp_config.json"],
                    &[r"C:\ada\.codeium\windsurf\mcp_config.json"],
                ],
            ),
            (
                Host::Cursor,
                [
                    &["/srv/shop/.cursor/mcp.json", "/ada/.cursor/mcp.json"],
                    &["/srv/shop/.cursor/mcp.json", "/ada/.cursor/mcp.json"],
                    &[r"C:\shop\.cursor\mcp.json", r"C:\ada\.cursor\mcp.json"],
                ],
            ),
        ];
        // In the project (`.`) and at home (`~`), with the same names on every system.
        let same: &[(Host, &[&str])] = &[
            (Host::CopilotCli, &["~/.copilot/mcp-config.json"]),
            (Host::GeminiCli, &["./.gemini/settings.json", "~/.gemini/settings.json"]),
            (Host::Inspector, &["~/.mcp-inspector/mcp.json"]),
            (Host::Kiro, &["./.kiro/settings/mcp.json", "~/.kiro/settings/mcp.json"]),
            (Host::LmStudio, &["~/.lmstudio/mcp.json"]),
            (Host::Mcporter, &["~/.mcporter/mcporter.json"]),
            (
                Host::OpenCode,
                &[
                    "./opencode.json",
                    "./opencode.jsonc",
                    "~/.config/opencode/opencode.json",
                    "~/.config/opencode/opencode.jsonc",
                ],
            ),
            (Host::RooCode, &["./.roo/mcp.json"]),
            (Host::Project, &["./mcp.json"]),
        ];
        for (host, files) in same {
            let at = |home: &str, project: &str, separator: &str| -> Vec<String> {
                let path = |file: &&str| match file.split_at(1) {
                    ("~", rest) => format!("{home}{}", rest.replace('/', separator)),
                    (_, rest) => format!("{project}{}", rest.replace('/', separator)),
                };
                files.iter().map(path).collect()
            };
            let unix = at("/ada", "/srv/shop", "/");
            assert_eq!(paths(Platform::Linux, "/ada", "/srv/shop", *host), unix, "{host}");
            assert_eq!(paths(Platform::MacOs, "/ada", "/srv/shop", *host), unix, "{host}");
            let windows = at(r"C:\ada", r"C:\shop", "\\");
            assert_eq!(paths(Platform::Windows, r"C:\ada", r"C:\shop", *host), windows, "{host}");
        }
        for host in Host::all() {
            let is_in_table = table.iter().any(|(known, _)| *known == host);
            assert!(is_in_table || same.iter().any(|(known, _)| *known == host), "{host}");
        }
        for (host, [linux, macos, windows]) in table {
            assert_eq!(paths(Platform::Linux, "/ada", "/srv/shop", *host), *linux, "{host}");
            assert_eq!(paths(Platform::MacOs, "/ada", "/srv/shop/", *host), *macos, "{host}");
            assert_eq!(paths(Platform::Windows, r"C:\ada", r"C:\shop", *host), *windows, "{host}");
        }
    }

    #[test]
    fn every_host_has_an_id() {
        assert_eq!(Host::all().count(), HOSTS.len());
        for host in Host::all() {
            assert_eq!(Host::from_id(host.id()), Some(host));
        }
        for (host, ..) in FILES {
            assert!(Host::all().any(|known| known == *host), "{host}");
        }
        assert_eq!(Host::from_id("Claude Code"), None);
    }

    #[test]
    fn without_a_project_there_are_the_users_files_only() {
        let locations = locations(&Directories::below(Platform::Linux, "/ada"));
        assert!(locations.iter().all(|location| location.scope == Scope::User));
        assert!(locations.iter().all(|location| location.path.starts_with("/ada")));
        assert!(locations.len() > 10);
    }
}
