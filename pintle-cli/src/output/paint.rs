use std::{fmt, io::IsTerminal};

/// Colours the output, or not.
#[derive(Clone, Copy, Debug)]
pub struct Paint {
    on: bool,
}

/// The kind of a text, which determines its colour.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tone {
    Title,
    Out,
    In,
    Method,
    Code,
    Faint,
    Error,
}

impl Paint {
    /// No colours.
    pub const PLAIN: Self = Self { on: false };

    #[cfg(test)]
    pub(crate) const COLOURED: Self = Self { on: true };

    /// Returns colours if the output is a terminal that has them and `NO_COLOR` is not set (<https://no-color.org>), or if
    /// `CLICOLOR_FORCE` is.
    pub fn of(output: &impl IsTerminal) -> Self {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0");
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let disabled = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { on: !disabled && (set("CLICOLOR_FORCE") || output.is_terminal() && !dumb) }
    }

    pub(crate) fn paint(self, tone: Tone, text: impl fmt::Display) -> String {
        let code = match tone {
            _ if !self.on => return text.to_string(),
            Tone::Title => "1;36",
            Tone::Out => "32",
            Tone::In => "35",
            Tone::Method => "1",
            Tone::Code => "33",
            Tone::Faint => "2",
            Tone::Error => "1;31",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_an_addition_to_the_same_text() {
        assert_eq!(Paint::PLAIN.paint(Tone::Out, "→"), "→");
        assert_eq!(Paint { on: true }.paint(Tone::Out, "→"), "\u{1b}[32m→\u{1b}[0m");
    }
}
