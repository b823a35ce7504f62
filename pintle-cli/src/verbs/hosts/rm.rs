use clap::Args;
use pintle_host::config::{ConfigEdit, Host, Location, Scope, locations};

use super::edit;
use crate::{
    args::{HELP, examples, near, quoted},
    failure::Failure,
    output::Output,
    targets::{directories, inventory},
};

/// Remove a server from the configuration of hosts
#[derive(Args, Debug)]
#[command(
    before_help = examples(&[
        ("pintle rm git --from cursor,vscode", ""),
        ("pintle rm git", "from the one host of the user that has it"),
        ("pintle rm git --from cursor --dry-run", "show the change only"),
    ]),
    help_template = HELP,
    override_usage = "pintle rm NAME [--from HOST,…]",
)]
pub(crate) struct RmArgs {
    #[arg(value_name = "NAME", hide = true)]
    name: String,
    /// The hosts
    #[arg(long, value_name = "HOST,…", value_delimiter = ',', value_parser = edit::host)]
    from: Vec<Host>,
    /// Change the file of the project in this directory, not the user's
    #[arg(long, requires = "from")]
    project: bool,
    /// Show what would change
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(args: RmArgs, output: &Output) -> Result<(), Failure> {
    let RmArgs { name, from, project, dry_run } = args;
    let files = match from.is_empty() {
        true => vec![only_file(&name)?],
        false => edit::files(&from, project)?,
    };
    let edits: Vec<_> = files
        .into_iter()
        .map(|location| {
            let edit = ConfigEdit::remove(&location, &name);
            (location, edit)
        })
        .collect();
    edit::apply(&edits, dry_run, output)
}

/// Returns the one file of the user that has the server.
fn only_file(name: &str) -> Result<Location, Failure> {
    let directories = directories();
    let servers = inventory(&directories).servers;
    let own =
        servers.iter().filter(|listed| listed.scope == Scope::User && listed.server.entry.project.is_none());
    let own: Vec<_> = own.collect();
    let mut hosts: Vec<_> = own.iter().filter(|listed| listed.server.entry.name == name).collect();
    let hosts_of = |hosts: &[&&crate::targets::ListedServer]| {
        let ids: Vec<_> = hosts.iter().map(|listed| listed.host.id()).collect();
        ids.join(",")
    };
    match hosts.as_slice() {
        [] => {
            let names = own.iter().map(|listed| listed.server.entry.name.as_str());
            let next = near(name, names).map(|meant| format!("pintle rm {}", quoted(meant)));
            let message = format!("no host of the user has a server `{name}`");
            Err(Failure::usage(message, next.unwrap_or_else(|| "pintle servers".to_owned())))
        }
        [_] => {
            let file = hosts.remove(0).server.entry.source.file.clone();
            let location = locations(&directories).into_iter().find(|location| location.path == *file);
            location.ok_or_else(|| Failure::internal(&"a file without a location"))
        }
        several => {
            let message = format!("{} hosts have a server `{name}`: write which", several.len());
            Err(Failure::usage(message, format!("pintle rm {} --from {}", quoted(name), hosts_of(several))))
        }
    }
}
