//! Files that `pintle serve` drafts and rewrites.

use std::fs;

use crate::support::{machine::Machine, pintle, run};

#[test]
fn a_tool_is_drafted_from_the_help_of_a_program() {
    let machine = Machine::new("serve-help");
    machine.write("greet.py", "import argparse\np = argparse.ArgumentParser(description='Greets somebody.')\np.add_argument('name')\np.add_argument('--loud', action='store_true')\na = p.parse_args()\nprint(a.name.upper() if a.loud else a.name)\n");
    let pintle = |words: &[&str]| run(pintle().args(words).current_dir(machine.path("")));
    let drafted = pintle(&["serve", "greet.toml", "--from-help", "python3 greet.py"]);
    assert_eq!(
        drafted.stdout, "greet.toml: 1 tool; check it with `pintle serve greet.toml --check`\n",
        "{drafted:?}"
    );
    let planned = pintle(&["serve", "greet.toml", "--dry-run", "python3_greet_py", "name=Ann", "loud=true"]);
    assert_eq!(planned.stdout, "python3 greet.py --loud Ann\n", "{planned:?}");
    let again = pintle(&["serve", "greet.toml", "--from-help", "python3 greet.py"]);
    assert!(again.code == Some(1) && again.stderr.contains("`greet.toml` cannot be written"), "{again:?}");
    let commands = pintle(&["serve", "--from-help", env!("CARGO_BIN_EXE_pintle")]);
    assert!(
        commands.stdout.contains("[tools.pintle]") && commands.stderr.contains("has commands"),
        "{commands:?}"
    );
    let none = pintle(&["serve", "--from-help", "no-such-program"]);
    assert!(none.code == Some(1) && none.stderr.contains("cannot be run"), "{none:?}");
}

#[test]
fn tools_and_profiles_of_go_go_mcp_are_imported() {
    let machine = Machine::new("serve-import");
    machine.write("old/log.yaml", "name: log\nshort: Shows commits.\nflags: [{ name: count, type: int, default: 5 }]\ncommand: [git, log, '-n{{ .Args.count }}']\n");
    machine.write("old/deep/today.yaml", "name: today\nshort: Prints the date.\nshell-script: date -u\n");
    machine.write("old/odd.yaml", "name: odd\nshort: Odd.\nshell-script: 'echo {{ .Args.x | quote }}'\n");
    machine.write(
        "profiles.yaml",
        "version: '1'\ndefaultProfile: team\nprofiles:\n  team:\n    description: For the team.\n    tools:\n      files:\n        \
         - { path: old/log.yaml, defaults: { default: { count: 3, verbose: true } }, blacklist: { default: [count] } }\n        - { path: gone.yaml }\n",
    );
    let pintle = |words: &[&str]| run(pintle().args(words).current_dir(machine.path("")));
    let folder = pintle(&["serve", "tools.toml", "--import", "old"]);
    assert_eq!(
        folder.stdout, "tools.toml: 2 tools; check it with `pintle serve tools.toml --check`\n",
        "{folder:?}"
    );
    assert!(
        folder.stderr.contains("left out: `old/odd.yaml`: `{{ .Args.x | quote }}` is more than"),
        "{folder:?}"
    );
    assert_eq!(pintle(&["serve", "tools.toml", "--dry-run", "log", "count=2"]).stdout, "git log -n2\n");

    let profiles = pintle(&["serve", "--import", "profiles.yaml"]);
    let expected = "[servers.team]\ninstructions = \"For the team.\"\nonly = [\"log\"]\n\n[servers.team.tools.log]\ndefault = { count = 3 }\n";
    assert!(profiles.stdout.contains(expected), "{profiles:?}");
    for part in [
        "`verbose` in `defaults` of `old/log.yaml`",
        "`blacklist` of `old/log.yaml`",
        "there is no `gone.yaml`",
        "`--profile team`",
    ] {
        assert!(profiles.stderr.contains(part), "{part}: {profiles:?}");
    }
    for (path, expected) in [
        ("none.yaml", "No such file"),
        ("old/odd.yaml", "has no tool that can be imported"),
        ("tools.toml", "line "),
    ] {
        let printed = pintle(&["serve", "--import", path]);
        assert!(printed.code == Some(1) && printed.stderr.contains(expected), "{printed:?}");
    }
}

#[test]
fn a_file_gets_the_version_of_its_format_and_keeps_its_comments() {
    let machine = Machine::new("serve-migrate");
    let migrate = |name| run(pintle().args(["serve", name, "--migrate"]).current_dir(machine.path("")));
    let toml = "# Ours.\n\n[tools.now] # not UTC\ncommand = [\"date\"]\n";
    let yaml = "%YAML 1.2\n---\n# Ours.\ntools: { now: { command: [date] } } # not UTC\n";
    for (name, text, begins) in [
        ("a.toml", toml, "# Ours.\n\nversion = 1\n[tools"),
        ("a.yaml", yaml, "%YAML 1.2\n---\n# Ours.\nversion: 1\ntools"),
        ("b.toml", &format!("\u{feff}{toml}"), "\u{feff}# Ours.\n\nversion = 1\n[tools"),
        (
            "b.yaml",
            "\u{feff}--- # Ours.\n{ tools: { now: { command: [date] } } } # not UTC\n",
            "\u{feff}--- # Ours.\n{ version: 1, tools",
        ),
    ] {
        machine.write(name, text);
        assert_eq!(migrate(name).stdout, format!("{name}: it has version 1 now\n"));
        let after = fs::read_to_string(machine.path(name)).unwrap();
        assert!(after.starts_with(begins) && after.contains("# not UTC"), "{after}");
        assert_eq!(migrate(name).stdout, format!("{name}: it has version 1 already\n"));
        assert_eq!(fs::read_to_string(machine.path(name)).unwrap(), after);
    }
    for (name, text, expected) in [
        (
            "flow.yaml",
            "&all { tools: { now: { command: [date] } } }\n",
            "`flow.yaml` cannot be migrated: it has no line for the version",
        ),
        (
            "new.toml",
            "version = 2\nnews = 1\n",
            "line 1: `version` is 2, and this program reads 1: update the program",
        ),
        ("no.toml", "", "there are no targets and no tools"),
    ] {
        machine.write(name, text);
        let printed = migrate(name);
        assert!(printed.code == Some(1) && printed.stderr.contains(expected), "{printed:?}");
        assert_eq!(fs::read_to_string(machine.path(name)).unwrap(), text);
    }
}
