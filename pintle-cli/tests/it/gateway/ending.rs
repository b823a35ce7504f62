//! How the programs behind a gateway are ended.

use crate::support::{machine::Machine, pintle, run};

/// When the input of its server has ended, it waits until that of the other one has, too. A signal ends the shell before it notes that.
const WAITING: &str =
    r#""$0" demo; : > "$1.ended"; until [ -e "$2.ended" ]; do sleep 0.01; done; : > "$1.met""#;

#[test]
fn programs_of_all_targets_end_at_the_same_time() {
    let machine = Machine::new("gateway-ending");
    let program = env!("CARGO_BIN_EXE_pintle");
    let target = |name: &str, other: &str, era: &str| {
        format!(
            "[targets.{name}]\nera = '{era}'\ncommand = ['sh', '-c', '{WAITING}', '{program}', '{name}', '{other}']\n"
        )
    };
    let file = target("one", "two", "stateless") + &target("two", "one", "session");
    machine.write("team.toml", &file);
    let printed = run(pintle().args(["gateway", "team.toml"]).current_dir(machine.path("")));
    assert_eq!(printed.code, Some(0), "{printed:?}");
    for name in ["one", "two"] {
        assert!(machine.path(&format!("{name}.met")).exists(), "`{name}` was killed: {printed:?}");
    }
}
