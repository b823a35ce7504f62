use std::ffi::OsStr;

use pintle_host::config::Platform;

/// Programs of Node that are scripts on Windows, which the system cannot start by itself.
const SCRIPTS: &[&str] = &["corepack", "npm", "npx", "pnpm", "pnpx", "yarn"];

/// Returns the words before the name of a program that start it on a system: none, or `cmd /c` for a script on Windows.
fn launcher(platform: Platform, program: &OsStr) -> &'static [&'static str] {
    let name = program.to_string_lossy().to_ascii_lowercase();
    let has_ending = [".cmd", ".bat"].iter().any(|ending| name.ends_with(ending));
    let is_script = has_ending || SCRIPTS.contains(&name.as_str());
    match platform {
        Platform::Windows if is_script => &["cmd", "/c"],
        _ => &[],
    }
}

/// Returns a program and its arguments as they are started on a system.
pub(crate) fn launched<W: AsRef<OsStr> + From<&'static str>>(
    platform: Platform,
    program: W,
    args: Vec<W>,
) -> (W, Vec<W>) {
    match launcher(platform, program.as_ref()) {
        [first, rest @ ..] => {
            let rest = rest.iter().map(|word| W::from(word));
            (W::from(first), rest.chain([program]).chain(args).collect())
        }
        [] => (program, args),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_started_by_cmd_on_windows_only() {
        for (words, on_windows) in [
            ("npx -y @scope/server", "cmd /c npx -y @scope/server"),
            ("NPX -y server", "cmd /c NPX -y server"),
            ("npm exec server", "cmd /c npm exec server"),
            ("pnpm dlx server", "cmd /c pnpm dlx server"),
            ("yarn dlx server", "cmd /c yarn dlx server"),
            (r"C:\tools\run.cmd a b", r"cmd /c C:\tools\run.cmd a b"),
            (r"C:\tools\run.BAT", r"cmd /c C:\tools\run.BAT"),
            // As it was written for Windows before.
            ("cmd /c npx -y server", "cmd /c npx -y server"),
            // Programs that are no scripts.
            ("npx.exe server", "npx.exe server"),
            ("node server.js", "node server.js"),
            ("uvx mcp-server-git", "uvx mcp-server-git"),
            (r"C:\npx\server.exe npx", r"C:\npx\server.exe npx"),
        ] {
            let started = |platform| {
                let mut all = words.split(' ').map(str::to_owned);
                let program = all.next().unwrap_or_default();
                let (program, args) = launched(platform, program, all.collect());
                [vec![program], args].concat().join(" ")
            };
            assert_eq!(started(Platform::Windows), on_windows, "{words}");
            assert_eq!(started(Platform::Linux), words);
            assert_eq!(started(Platform::MacOs), words);
        }
    }
}
