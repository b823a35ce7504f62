use std::{fmt, path::PathBuf};

use serde::Serialize;

/// A command as it runs for a call.
///
/// `Display` writes it as a line that a shell in its directory would read so, with its standard input. It has the names of the variables that the file sets,
/// and not their values, which may be secrets.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct CommandPlan {
    /// The program and its arguments.
    pub words: Vec<String>,
    /// The names of the variables that the file sets.
    pub env: Vec<String>,
    /// The directory.
    pub cwd: PathBuf,
    /// The standard input.
    pub stdin: Option<String>,
    /// The seconds of CPU time that each process has.
    pub max_cpu: Option<u64>,
}

/// A script that limits the CPU time of the command in its parameters: one that goes on after `SIGXCPU` is killed a second later.
const LIMITED: &str = r#"ulimit -S -t "$1" && ulimit -H -t "$2" && shift 2 && exec "$@""#;

impl CommandPlan {
    /// Returns the words to start.
    pub(crate) fn limited_words(&self) -> Vec<String> {
        let Some(seconds) = self.max_cpu else { return self.words.clone() };
        let limits = [seconds, seconds.saturating_add(1)].map(|seconds| seconds.to_string());
        let script = ["sh", "-c", LIMITED, "sh"].map(str::to_owned);
        script.into_iter().chain(limits).chain(self.words.iter().cloned()).collect()
    }
}

impl fmt::Display for CommandPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(seconds) = self.max_cpu {
            write!(f, "ulimit -t {seconds} && ")?;
        }
        if let Some(stdin) = &self.stdin {
            write!(f, "printf %s {} | ", quoted(stdin))?;
        }
        for name in &self.env {
            write!(f, "{name}=… ")?;
        }
        let words: Vec<String> = self.words.iter().map(|word| quoted(word)).collect();
        f.write_str(&words.join(" "))
    }
}

/// Quotes a word for a shell, if it needs that.
///
/// ```
/// use pintle_serve::quoted;
///
/// assert_eq!(["a=b", "", "a b", "it's", "~"].map(quoted), ["a=b", "''", "'a b'", r"'it'\''s'", "'~'"]);
/// ```
pub fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,@%+…".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_shell_reads_the_words_that_are_printed() {
        let words =
            ["printf", "%s\\n", "a b", "", "it's", "$(id)", "`x`", "\"", "a\nb", "-x", "*", "\\", "#", "ü"];
        let words = words.map(str::to_owned).to_vec();
        let mut plan = CommandPlan {
            words: words.clone(),
            env: Vec::new(),
            cwd: ".".into(),
            stdin: None,
            max_cpu: None,
        };
        for shell in ["sh", "bash", "dash"] {
            let Ok(output) = Command::new(shell).args(["-c", &plan.to_string()]).output() else { continue };
            let expected: String = words[2..].iter().map(|word| format!("{word}\n")).collect();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), expected, "{shell}");
        }
        (plan.words, plan.stdin) = (vec!["cat".to_owned()], Some("it's %s\n".to_owned()));
        let output = Command::new("sh").args(["-c", &plan.to_string()]).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "it's %s\n");
    }
}
