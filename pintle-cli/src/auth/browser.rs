use std::{
    env, io,
    process::{Command, Stdio},
};

/// Opens a page in the program that `BROWSER` names, or in the system's browser. Fails if there is no display.
pub(crate) fn open_browser(url: &str) -> io::Result<()> {
    let browser = browser(&|name| env::var(name).ok(), env::consts::OS);
    let mut command = browser.ok_or_else(|| io::Error::other("there is no display"))?;
    let mut child =
        command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    // It passes the address on and exits; its exit status has to be collected.
    std::thread::spawn(move || child.wait());
    Ok(())
}

/// Returns the command that opens a URL. Without a display there is none: a browser in the terminal would take it over.
fn browser(variable: &dyn Fn(&str) -> Option<String>, os: &str) -> Option<Command> {
    let set = |name| variable(name).filter(|value| !value.is_empty());
    if let Some(own) = set("BROWSER") {
        // A list, of which the first is preferred.
        let first = own.split(':').next().unwrap_or_default();
        return Some(Command::new(first.trim_end_matches(" %s")));
    }
    match os {
        "windows" => {
            let mut command = Command::new("rundll32");
            command.arg("url.dll,FileProtocolHandler");
            Some(command)
        }
        "macos" => Some(Command::new("open")),
        _ if set("DISPLAY").or_else(|| set("WAYLAND_DISPLAY")).is_some() => Some(Command::new("xdg-open")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_needs_a_display() {
        let program = |variables: &[(&str, &str)], os| {
            let variable = |name: &str| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            };
            browser(&variable, os).map(|command| command.get_program().to_string_lossy().into_owned())
        };
        assert_eq!(program(&[], "linux"), None);
        assert_eq!(program(&[("DISPLAY", "")], "linux"), None);
        assert_eq!(program(&[("DISPLAY", ":0")], "linux").as_deref(), Some("xdg-open"));
        assert_eq!(program(&[("BROWSER", "firefox %s:w3m")], "linux").as_deref(), Some("firefox"));
        assert_eq!(program(&[], "macos").as_deref(), Some("open"));
        assert_eq!(program(&[], "windows").as_deref(), Some("rundll32"));
    }
}
