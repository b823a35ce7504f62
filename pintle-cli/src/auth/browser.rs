use std::{
    env, io,
    process::{Command, Stdio},
};

/// Opens a page in the program that `BROWSER` names, or in the system's browser.
pub(crate) fn open_browser(url: &str) -> io::Result<()> {
    let chosen = env::var("BROWSER").ok().filter(|browser| !browser.is_empty());
    let mut command = match &chosen {
        // Of a list, the first.
        Some(browser) => Command::new(browser.split(':').next().unwrap_or(browser)),
        None if cfg!(target_os = "macos") => Command::new("open"),
        None if cfg!(windows) => {
            let mut command = Command::new("rundll32");
            command.arg("url.dll,FileProtocolHandler");
            command
        }
        None => Command::new("xdg-open"),
    };
    let mut child =
        command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    // It passes the address on and exits; its exit status has to be collected.
    std::thread::spawn(move || child.wait());
    Ok(())
}
