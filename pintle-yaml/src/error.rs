use std::{error::Error, fmt};

use saphyr_parser::Marker;

/// A place in a text. Both numbers begin at 1.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

impl Position {
    pub(crate) fn of(marker: &Marker) -> Self {
        Self { line: marker.line().max(1), column: marker.col() + 1 }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// The reason why a text was refused, and where.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct YamlError {
    position: Position,
    reason: String,
}

impl YamlError {
    pub(crate) fn new(position: Position, reason: impl Into<String>) -> Self {
        Self { position, reason: reason.into() }
    }

    /// Returns where it is.
    pub fn position(&self) -> Position {
        self.position
    }
}

impl fmt::Display for YamlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.position, self.reason)
    }
}

impl Error for YamlError {}
