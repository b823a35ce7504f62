use crate::{ArgumentEntry, CommandEntry, ToolEntry};

/// Reads a tool of one line: `NAME(ARGUMENT: TYPE, …) = PROGRAM WORD …`, with the types of [`ArgumentEntry::Brief`].
///
/// Words are separated by spaces; quotes and `\` work as in a shell, which reads nothing of it.
///
/// # Errors
///
/// The line is not of this form. The error says what to write.
///
/// ```
/// use pintle_serve::{CommandEntry, parse_one_line};
///
/// let (name, tool) = parse_one_line("greet(name: string, times: integer = 1) = echo 'Hello {name}' {times}").unwrap();
/// assert_eq!(name, "greet");
/// assert_eq!(tool.command, CommandEntry::Words(["echo", "Hello {name}", "{times}"].map(Into::into).into()));
/// assert!(parse_one_line("echo Hello").is_err());
/// ```
pub fn parse_one_line(line: &str) -> Result<(String, ToolEntry), String> {
    let wrong = || {
        format!(
            "`{line}` is no tool: write `NAME(ARGUMENT: TYPE) = PROGRAM WORD`, such as `greet(name: string) = echo Hello {{name}}`"
        )
    };
    let name = line.split(['(', '=']).next().unwrap_or_default();
    let mut rest = line[name.len()..].trim_start();
    let mut entry = ToolEntry::default();
    if let Some(inner) = rest.strip_prefix('(') {
        let (arguments, after) = inner.split_once(')').ok_or_else(wrong)?;
        for argument in arguments.split(',').map(str::trim).filter(|argument| !argument.is_empty()) {
            let (argument, kind) = argument.split_once(':').unwrap_or((argument, "string"));
            let brief = ArgumentEntry::Brief(kind.trim().to_owned());
            entry.arguments.insert(argument.trim().to_owned(), brief);
        }
        rest = after.trim_start();
    }
    let command = rest.strip_prefix('=').ok_or_else(wrong)?;
    entry.command = CommandEntry::Words(words(command).map_err(|reason| format!("`{line}`: {reason}"))?);
    Ok((name.trim().to_owned(), entry))
}

/// Separates words as a shell does.
fn words(text: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => {
                let escaped = letters.next().ok_or("it ends with `\\`: remove that")?;
                word.get_or_insert_default().push(escaped);
            }
            (None, _) if letter.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    if let Some(quote) = quote {
        return Err(format!("it has a `{quote}` without an end: close it"));
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_a_shell() {
        let read = words(r#" a  'b c' "d 'e' \" f" g\ h '' "{x?--y}" "#).unwrap();
        assert_eq!(read, ["a", "b c", "d 'e' \" f", "g h", "", "{x?--y}"]);
        for wrong in ["'a", "\"a", "a\\"] {
            assert!(words(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_line_has_a_name_arguments_and_a_command() {
        let (name, tool) = parse_one_line("today = date -u").unwrap();
        assert_eq!((&*name, tool.arguments.len()), ("today", 0));
        let (_, tool) =
            parse_one_line("log(count: integer = 3, path) = git log -n{count} -- {path}").unwrap();
        assert_eq!(tool.arguments["count"], ArgumentEntry::Brief("integer = 3".to_owned()));
        assert_eq!(tool.arguments["path"], ArgumentEntry::Brief("string".to_owned()));
        for wrong in ["greet", "greet(name: string", "greet(name: string) echo", "x = 'a"] {
            assert!(parse_one_line(wrong).is_err(), "{wrong}");
        }
    }
}
