//! How the program behind a bridge is ended.

use crate::support::{machine::Machine, pintle, run};

/// Notes that its server has ended by itself. A signal would end the shell too, before it notes anything.
const NOTING: &str = r#""$0" demo; echo "exited with status $?" > "$1""#;

/// Nothing waits for the bridge to be gone: a program of either era reads the end of its input first, and the bridge waits for it.
#[test]
fn a_program_ends_with_the_end_of_its_input() {
    for era in ["stateless", "session"] {
        let machine = Machine::new(&format!("bridge-ending-{era}"));
        let ended = machine.path("ended");
        let mut bridge = pintle();
        bridge
            .args(["bridge", "--era", era, "--", "sh", "-c", NOTING, env!("CARGO_BIN_EXE_pintle")])
            .arg(&ended);
        let printed = run(&mut bridge);
        assert_eq!(printed.code, Some(0), "{printed:?}");
        let noted = std::fs::read_to_string(&ended).unwrap_or_else(|_| "killed".to_owned());
        assert_eq!(noted, "exited with status 0\n", "{era}: {printed:?}");
    }
}
