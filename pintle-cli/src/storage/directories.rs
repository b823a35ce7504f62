use std::path::{Path, PathBuf};

use pintle_host::config::Platform;

/// Returns the directory of what the command keeps: `PINTLE_STATE_DIR`, or that of the platform. `None` if there is no home.
pub(crate) fn state_directory() -> Option<PathBuf> {
    find(Platform::current(), &variable, &STATE)
}

/// Returns the directory of what can be fetched again: `PINTLE_CACHE_DIR`, or that of the platform. `None` if there is no home.
pub(crate) fn cache_directory() -> Option<PathBuf> {
    find(Platform::current(), &variable, &CACHE)
}

/// Where a kind of files is kept.
struct StorageKind {
    /// The variable that overrides the platform.
    own: &'static str,
    /// The variable of the XDG base directories, and its default below the home directory.
    xdg: (&'static str, &'static str),
    /// Below the home directory of macOS.
    macos: &'static str,
    /// Below `%LOCALAPPDATA%`.
    windows: &'static str,
}

const STATE: StorageKind = StorageKind {
    own: "PINTLE_STATE_DIR",
    xdg: ("XDG_STATE_HOME", ".local/state"),
    macos: "Library/Application Support/pintle",
    windows: "pintle",
};

const CACHE: StorageKind = StorageKind {
    own: "PINTLE_CACHE_DIR",
    xdg: ("XDG_CACHE_HOME", ".cache"),
    macos: "Library/Caches/pintle",
    windows: "pintle/cache",
};

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn find(
    platform: Platform,
    variable: &dyn Fn(&str) -> Option<PathBuf>,
    kind: &StorageKind,
) -> Option<PathBuf> {
    if let Some(own) = variable(kind.own) {
        return Some(own);
    }
    // A relative path in them is invalid, by the specification of XDG.
    let absolute = |name| variable(name).filter(|path| path.is_absolute());
    let home = |name, below: &str| variable(name).map(|home| home.join(Path::new(below)));
    match platform {
        Platform::Windows => home("LOCALAPPDATA", kind.windows),
        Platform::MacOs => {
            absolute(kind.xdg.0).map(|path| path.join("pintle")).or_else(|| home("HOME", kind.macos))
        }
        _ => absolute(kind.xdg.0).or_else(|| home("HOME", kind.xdg.1)).map(|path| path.join("pintle")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(platform: Platform, variables: &[(&str, &str)], kind: &StorageKind) -> Option<String> {
        let variable =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
        find(platform, &variable, kind).map(|path| path.to_string_lossy().replace('\\', "/"))
    }

    #[test]
    #[cfg(unix)]
    fn each_platform_has_its_place() {
        let home = ("HOME", "/h");
        for (platform, variables, state, cache) in [
            (Platform::Linux, &[home][..], "/h/.local/state/pintle", "/h/.cache/pintle"),
            (
                Platform::Linux,
                &[home, ("XDG_STATE_HOME", "/s"), ("XDG_CACHE_HOME", "c")],
                "/s/pintle",
                "/h/.cache/pintle",
            ),
            (Platform::MacOs, &[home], "/h/Library/Application Support/pintle", "/h/Library/Caches/pintle"),
            (Platform::Windows, &[("LOCALAPPDATA", "C:/L")], "C:/L/pintle", "C:/L/pintle/cache"),
            (Platform::Linux, &[home, ("PINTLE_STATE_DIR", "x"), ("PINTLE_CACHE_DIR", "y")], "x", "y"),
        ] {
            assert_eq!(found(platform, variables, &STATE).as_deref(), Some(state));
            assert_eq!(found(platform, variables, &CACHE).as_deref(), Some(cache));
        }
        assert_eq!(found(Platform::Linux, &[], &STATE), None);
    }
}
