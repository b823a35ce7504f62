//! Lines for a shell with places.
//!
//! A value is a parameter of the shell and never a part of the line, but where a place stands decides whether it stays one word. What
//! the reader does not understand is refused in a line with places.

use std::collections::BTreeMap;

use crate::{argument::Argument, text::Place};

use super::script::{Word, is_program, pastes_into_script};

/// Commands of a shell that run or evaluate what their arguments hold, or change the parameters.
const EVALUATING: &[&str] =
    &["eval", "trap", "alias", "let", "declare", "typeset", "local", "unset", "read", "shift"];

/// A part of a line for a shell.
#[derive(Clone, Debug)]
pub(super) enum LinePart {
    Literal(String),
    Place {
        place: Place,
        is_quoted: bool,
        /// Whether a value is the beginning of a word that can be an option.
        begins_word: bool,
    },
}

/// Reads a line for a shell: a place in double quotes is a parameter there, and one outside of quotes is a word or a part of one.
pub(super) fn read_line(line: &str, arguments: &BTreeMap<String, Argument>) -> Result<Vec<LinePart>, String> {
    let mut reader = LineReader {
        rest: line,
        arguments,
        parts: Vec::new(),
        literal: String::new(),
        context: Context::default(),
        outer: Vec::new(),
    };
    if !has_places(line) {
        return Ok(vec![LinePart::Literal(line.to_owned())]);
    }
    reader.read()?;
    Ok(reader.parts)
}

/// Commands that are read: those of the line, of `$(…)`, or of `(…)`.
#[derive(Debug, Default)]
struct Context {
    command: SimpleCommand,
    /// Whether a text in double quotes is read.
    is_quoted: bool,
}

/// A command of a line, as far as it is read.
#[derive(Debug, Default)]
struct SimpleCommand {
    words: Vec<Word>,
    /// The word that is read; `None` between words.
    word: Option<Word>,
    /// Whether the next word is a file that is redirected to.
    redirects: bool,
}

struct LineReader<'a> {
    rest: &'a str,
    arguments: &'a BTreeMap<String, Argument>,
    parts: Vec<LinePart>,
    literal: String,
    context: Context,
    /// The contexts that this one is in.
    outer: Vec<Context>,
}

/// Returns whether a line has something in braces that is a place, and not a variable of a shell.
fn has_places(line: &str) -> bool {
    let mut pieces = line.split('{').peekable();
    let mut before = pieces.next().unwrap_or_default();
    pieces.any(|piece| {
        let is_place = !before.ends_with('$') && inner(piece).is_some();
        before = piece;
        is_place
    })
}

/// Returns the inner part of a place, of what follows its brace.
fn inner(after: &str) -> Option<&str> {
    let (inner, _) = after.split_once('}')?;
    let name = inner.split_once('?').map_or(inner, |(name, _)| name);
    let is_name =
        !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    is_name.then_some(inner)
}

impl SimpleCommand {
    /// Ends the word that is read.
    fn end_word(&mut self) {
        if let Some(word) = self.word.take()
            && !std::mem::take(&mut self.redirects)
        {
            self.words.push(word);
        }
    }

    /// Ends the command.
    fn end(&mut self) -> Result<(), String> {
        self.end_word();
        let command = std::mem::take(self);
        let has_place = command.words.iter().any(|word| word.has_place);
        let program = command.words.iter().position(|word| !is_before_program(word));
        let program = program.and_then(|at| Some((command.words.get(at)?, &command.words[at + 1..])));
        if let Some((program, rest)) = program {
            if ["case", "[[", "function"].contains(&&*program.text) {
                return Err(format!(
                    "a line with places has no `{}`: write a script, and call it",
                    program.text
                ));
            }
            if has_place && EVALUATING.contains(&&*program.text) {
                return Err(evaluated(&program.text));
            }
            if program.text == "set"
                && rest.iter().any(|word| !word.text.starts_with(['-', '+']) || word.text == "--")
            {
                return Err(
                    "`set` would change the parameters, which are the values: write a script, and call it"
                        .to_owned(),
                );
            }
        }
        pastes_into_script(&command.words)
    }
}

/// Returns whether a word comes before the program of a command.
fn is_before_program(word: &Word) -> bool {
    const RESERVED: &[&str] = &["if", "then", "elif", "else", "while", "until", "do", "!", "time", "{"];
    RESERVED.contains(&&*word.text) || is_assignment(&word.text)
}

fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| {
        name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    })
}

/// Returns whether the next word of a command is its program, also behind programs that run another one.
fn chooses_program(words: &[Word], word: &Word) -> bool {
    const RUNNING: &[&str] = &[
        "command", "exec", "builtin", "nohup", "env", "sudo", "doas", "nice", "ionice", "setsid", "stdbuf",
        "xargs",
    ];
    let mut runs_another = false;
    for before in words {
        let is_option = runs_another && before.text.starts_with('-');
        match RUNNING.iter().any(|name| is_program(&before.text, name)) {
            true => runs_another = true,
            false if is_option || is_before_program(before) => {}
            false => return false,
        }
    }
    !is_assignment(&word.text)
}

impl<'a> LineReader<'a> {
    fn read(&mut self) -> Result<(), String> {
        while let Some(letter) = self.rest.chars().next() {
            let after = &self.rest[letter.len_utf8()..];
            match (letter, inner(after)) {
                ('{', Some(inner)) => self.place(inner)?,
                ('$', _) => self.variable(after)?,
                ('\\', _) => {
                    let length = letter.len_utf8() + after.chars().next().map_or(0, char::len_utf8);
                    self.add_text(length);
                }
                ('`', _) => {
                    return Err("a line with places has no backticks: write `$(…)`".to_owned());
                }
                ('"', _) => self.quote(),
                _ if self.context.is_quoted => self.add_text(letter.len_utf8()),
                ('\'', _) => {
                    let text = after.split('\'').next().unwrap_or_default();
                    if after.len() == text.len() {
                        return Err("the line has a `'` without an end: close it".to_owned());
                    }
                    if let Some(name) = text.split('{').skip(1).find_map(inner) {
                        return Err(format!(
                            "`{{{name}}}` is in single quotes, where a shell knows no parameters: use double quotes, or none"
                        ));
                    }
                    self.word().text.push_str(text);
                    self.take(text.len() + 2);
                }
                ('#', _) if self.context.command.word.is_none() => {
                    self.take(self.rest.find('\n').unwrap_or(self.rest.len()));
                }
                _ => self.unquoted(letter)?,
            }
        }
        if self.context.is_quoted {
            return Err("the line has a `\"` without an end: close it".to_owned());
        }
        if !self.outer.is_empty() {
            return Err("the line has a `(` without an end: close it".to_owned());
        }
        self.context.command.end()?;
        let literal = std::mem::take(&mut self.literal);
        self.parts.push(LinePart::Literal(literal));
        Ok(())
    }

    /// Reads a letter outside of quotes.
    fn unquoted(&mut self, letter: char) -> Result<(), String> {
        match letter {
            ' ' | '\t' => self.context.command.end_word(),
            ';' | '|' | '&' | '\n' => self.context.command.end()?,
            '(' if self.context.command.word.is_some() => {
                return Err("a line with places has no functions: write a script, and call it".to_owned());
            }
            '(' if self.rest.starts_with("((") => return Err(arithmetic()),
            '(' => {
                self.context.command.end()?;
                self.enter();
            }
            ')' => {
                self.context.command.end()?;
                let Some(outer) = self.outer.pop() else {
                    return Err("the line has a `)` without a `(`: remove it".to_owned());
                };
                self.context = outer;
            }
            '<' if self.rest.starts_with("<<") => {
                return Err("a line with places has no `<<`: write `stdin`".to_owned());
            }
            '<' | '>' => {
                let command = &mut self.context.command;
                // It may be the number of a file.
                command
                    .word
                    .take_if(|word| !word.has_place && word.text.bytes().all(|byte| byte.is_ascii_digit()));
                command.end_word();
                command.redirects = true;
                // `>&` and `>|` are no ends of commands.
                let sign = self.rest[1..].starts_with(['&', '|', '>']);
                self.take(1 + usize::from(sign));
                return Ok(());
            }
            letter => self.word().text.push(letter),
        }
        self.take(letter.len_utf8());
        Ok(())
    }

    /// Begins or ends a text in double quotes.
    fn quote(&mut self) {
        self.word();
        self.context.is_quoted = !self.context.is_quoted;
        self.take(1);
    }

    /// Begins commands within others.
    fn enter(&mut self) {
        self.outer.push(std::mem::take(&mut self.context));
    }

    /// Reads what follows a `$`.
    fn variable(&mut self, after: &str) -> Result<(), String> {
        let parameters = "the parameters of the shell are the values: write places in place of `$1` and `$@`";
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        if after.starts_with("((") {
            return Err(arithmetic());
        }
        if after.starts_with('(') {
            self.word();
            self.enter();
            self.take(2);
            return Ok(());
        }
        if let Some(inner) = after.strip_prefix('{') {
            let (text, _) = inner.split_once('}').unwrap_or((inner, ""));
            if text.starts_with(|first: char| first.is_ascii_digit() || "@*".contains(first)) {
                return Err(parameters.to_owned());
            }
            if text.contains(['"', '\'', '`', '$', '{', '\\', '[', '(']) || text.len() == inner.len() {
                return Err(format!(
                    "`${{{text}}}` is too much for a line with places: write a script, and call it"
                ));
            }
            self.word();
            self.take(text.len() + 3);
            return Ok(());
        }
        match after.chars().next() {
            Some('\'' | '"') if !self.context.is_quoted => {
                Err("a line with places has no `$'` and `$\"`: write another quote".to_owned())
            }
            Some(first) if first.is_ascii_digit() || "@*".contains(first) => Err(parameters.to_owned()),
            Some(first) if is_name(first) => {
                self.word();
                self.take(1 + after.find(|letter| !is_name(letter)).unwrap_or(after.len()));
                Ok(())
            }
            Some('?' | '#' | '$' | '!' | '-') => {
                self.word();
                self.take(2);
                Ok(())
            }
            _ => {
                self.add_text(1);
                Ok(())
            }
        }
    }

    fn place(&mut self, inner: &str) -> Result<(), String> {
        let place = Place::read(inner, self.arguments)?;
        let (name, is_quoted, flag) = (place.name.clone(), self.context.is_quoted, place.text.is_some());
        let behind = self.rest[inner.len() + 2..].chars().next();
        let command = &mut self.context.command;
        let is_alone = command.word.is_none() && behind.is_none_or(|letter| " \t\n;|&)".contains(letter));
        if place.is_list && (is_quoted || !is_alone) {
            return Err(format!(
                "`{name}` is a list, which needs a word of its own: write it without quotes and other text"
            ));
        }
        let word = command.word.get_or_insert_default();
        if !command.redirects && chooses_program(&command.words, word) {
            return Err(format!("`{{{name}}}` would let a call choose the program: write its name"));
        }
        let program = command.words.iter().find(|word| !is_before_program(word));
        if let Some(program) = program.filter(|program| ["export", "readonly"].contains(&&*program.text))
            && !is_assignment(&word.text)
        {
            return Err(evaluated(&program.text));
        }
        let begins_word = word.text.is_empty() && !command.redirects && !ends_options(&command.words);
        word.has_place = true;
        if flag {
            // It is the text of the line, or nothing.
            word.text.push_str(place.text.as_deref().unwrap_or_default());
        }
        let literal = std::mem::take(&mut self.literal);
        self.parts.push(LinePart::Literal(literal));
        self.parts.push(LinePart::Place { place, is_quoted, begins_word });
        self.rest = &self.rest[inner.len() + 2..];
        Ok(())
    }

    /// Returns the word that is read, which begins here if there is none.
    fn word(&mut self) -> &mut Word {
        self.context.command.word.get_or_insert_default()
    }

    /// Adds the next bytes to the word.
    fn add_text(&mut self, bytes: usize) {
        let text = self.rest[..bytes].to_owned();
        self.word().text.push_str(&text);
        self.take(bytes);
    }

    /// Takes the next bytes as they are.
    fn take(&mut self, bytes: usize) {
        let (taken, rest) = self.rest.split_at(bytes);
        self.literal += taken;
        self.rest = rest;
    }
}

/// Returns whether the next word of a command cannot be an option: it follows `--`, or other values do.
fn ends_options(words: &[Word]) -> bool {
    words.iter().rfind(|word| !(word.has_place && word.text.is_empty())).is_some_and(|word| word.text == "--")
}

fn evaluated(program: &str) -> String {
    format!("`{program}` of a shell may run what a value holds: write a script, and call it")
}

fn arithmetic() -> String {
    "a shell may run what a value holds within `((`: compute in the program, or without places".to_owned()
}
