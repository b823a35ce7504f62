use std::{
    fs, io,
    path::{Path, PathBuf},
};

use clap::{Args, Command};
use clap_mangen::{
    Man,
    roff::{Roff, roman},
};
use serde_json::json;

use crate::{
    args::{HELP, examples, quoted},
    failure::Failure,
    output::Output,
};

/// Write the manual pages of this command
#[derive(Args, Debug)]
#[command(
    before_help = examples(&[
        ("pintle man ~/.local/share/man/man1", "where `man` finds them"),
        ("man pintle-call", "read one"),
    ]),
    help_template = HELP,
)]
pub(crate) struct ManArgs {
    /// The directory, which is created
    directory: PathBuf,
}

/// Writes a page for the command and for each of its verbs.
pub(crate) fn run(args: &ManArgs, command: Command, output: &Output) -> Result<(), Failure> {
    let directory = &args.directory;
    let failed = |error: io::Error| {
        let shown = directory.display();
        let message = format!("the manual pages cannot be written to `{shown}`: {error}");
        Failure::usage(message, format!("ls -ld {}", quoted(&directory.to_string_lossy())))
    };
    let pages = pages(command).map_err(failed)?;
    write(directory, &pages).map_err(failed)?;
    let files: Vec<_> = pages.iter().map(|(name, _)| name.as_str()).collect();
    output.result(&json!({ "directory": directory.to_string_lossy(), "files": files }), |text| {
        text.line(format_args!("{} pages in {}", files.len(), directory.display()));
    })
}

fn write(directory: &Path, pages: &[(String, Vec<u8>)]) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    pages.iter().try_for_each(|(name, page)| fs::write(directory.join(name), page))
}

/// Returns the name and the contents of each page.
fn pages(mut command: Command) -> io::Result<Vec<(String, Vec<u8>)>> {
    command.build();
    let mut pages = Vec::new();
    let mut left = vec![(command.get_name().to_owned(), command)];
    while let Some((name, command)) = left.pop() {
        let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set() && verb.get_name() != "help");
        left.extend(verbs.map(|verb| (format!("{name}-{}", verb.get_name()), verb.clone())));
        pages.push((format!("{name}.1"), page(&name, command)?));
    }
    pages.sort();
    Ok(pages)
}

/// Returns a page: examples come first, as in the help.
fn page(name: &str, command: Command) -> io::Result<Vec<u8>> {
    let section = |title: &str, text: &str, out: &mut Vec<u8>| {
        let mut roff = Roff::new();
        roff.control("SH", [title]).control("nf", []);
        for line in text.lines() {
            roff.text([roman(line)]);
        }
        roff.control("fi", []).to_writer(out)
    };
    let examples = command.get_before_help().map(ToString::to_string).unwrap_or_default();
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let has_verbs = command.has_subcommands();
    let man = Man::new(command.display_name(name).bin_name(name.replace('-', " ")))
        .title(name.to_uppercase())
        .source(concat!("pintle ", env!("CARGO_PKG_VERSION")))
        .manual("Pintle");
    let mut out = Vec::new();
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    man.render_synopsis_section(&mut out)?;
    if let Some(rows) = examples.strip_prefix("Examples:\n") {
        section("EXAMPLES", rows, &mut out)?;
    }
    if has_verbs {
        man.render_subcommands_section(&mut out)?;
    }
    man.render_options_section(&mut out)?;
    if let Some((_, rows)) = after.split_once("Targets:\n") {
        section("TARGETS", rows, &mut out)?;
    }
    section(
        "SEE ALSO",
        if name == "pintle" { "pintle-call(1), pintle-ls(1)" } else { "pintle(1)" },
        &mut out,
    )?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn every_verb_has_a_page_with_examples() {
        let command = crate::cli::Cli::command();
        let pages = pages(command.clone()).unwrap();
        for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
            let file = format!("pintle-{}.1", verb.get_name());
            let page = pages.iter().find(|(name, _)| *name == file);
            let text = String::from_utf8(page.unwrap_or_else(|| panic!("no page {file}")).1.clone()).unwrap();
            assert!(text.contains(".SH EXAMPLES") && text.contains(".SH OPTIONS"), "{file}: {text}");
        }
        assert!(pages.iter().any(|(name, _)| name == "pintle.1"));
    }
}
