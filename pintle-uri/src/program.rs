//! The compiled form of a template, and the matcher that runs it.
//!
//! A program is a small automaton that runs by backtracking. Every pair of step and position is tried once, so a match takes
//! at most (steps × bytes of the URI) steps.

use super::{
    canonical::Uri,
    error::TemplateError,
    parse::{Expression, Operator, Part, Variable},
    percent::{Set, character, normalise},
};

/// The limit of steps. Templates written by hand have far fewer.
const MAX_STEPS: usize = 512;

/// A compiled template.
#[derive(Clone, Debug)]
pub(super) struct Program {
    steps: Vec<Step>,
    /// The captured parts of the URI.
    pub(super) captures: Vec<Capture>,
}

/// A part of the URI that is captured.
#[derive(Clone, Debug)]
pub(super) enum Capture {
    /// The value of the variable with this index.
    Single { operator: Operator, variable: usize },
    /// `name=value` pairs, in any order, of the variables with these indexes.
    Pairs { separator: char, variables: Vec<usize> },
}

/// How strictly unencoded characters are matched.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Mode {
    /// Only characters that an expansion leaves unencoded.
    Strict,
    /// Also characters that should be encoded, where they are unambiguous.
    Lenient,
}

#[derive(Clone, Debug)]
enum Step {
    /// This text. Schemes and hosts are case-insensitive.
    Literal {
        text: String,
        any_case: bool,
    },
    /// One character, encoded or not.
    Character {
        strict: Set,
        lenient: Set,
    },
    /// The first, and if that does not match the second.
    Split {
        first: usize,
        second: usize,
    },
    Jump(usize),
    Save(usize),
    End,
}

impl Program {
    /// Compiles a template, or returns why it is ambiguous.
    pub(super) fn compile(parts: &[Part], bytes: usize) -> Result<Self, TemplateError> {
        refuse_ambiguity(parts)?;
        let mut compiler = Compiler { steps: Vec::new(), captures: Vec::new(), variables: 0 };
        let mut authority = Authority::Before;
        let mut i = 0;
        while let Some(part) = parts.get(i) {
            i += 1;
            match part {
                Part::Literal(text) => compiler.literal(text, &mut authority),
                Part::Expression(expression) if expression.operator.named() => {
                    authority.pass(expression.operator.lead());
                    let more = parts[i..].iter().map_while(|part| match part {
                        Part::Expression(next) if continues(expression.operator, next.operator) => Some(next),
                        _ => None,
                    });
                    let group: Vec<_> = std::iter::once(expression).chain(more).collect();
                    i += group.len() - 1;
                    compiler.pairs(&group);
                }
                Part::Expression(expression) => {
                    authority.pass(expression.operator.lead());
                    compiler.values(expression, &parts[i..]);
                }
            }
            if compiler.steps.len() > MAX_STEPS {
                return Err(TemplateError::TooLarge { bytes });
            }
        }
        compiler.steps.push(Step::End);
        Ok(Self { steps: compiler.steps, captures: compiler.captures })
    }

    /// Returns the number of steps.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether a normalised URI starts like the template, as a cheap first check.
    pub(super) fn may_match(&self, uri: &str) -> bool {
        match self.steps.first() {
            Some(Step::Literal { text, any_case }) => starts_with(uri, 0, text, *any_case),
            _ => true,
        }
    }

    /// Matches a normalised URI and returns the start and end of each capture. Each step is taken from `left`.
    pub(super) fn run(&self, uri: &str, mode: Mode, left: &mut usize) -> Option<Vec<Option<(usize, usize)>>> {
        let width = uri.len() + 1;
        let words = (self.steps.len() * width).div_ceil(64);
        *left = left.checked_sub(words)?;
        let mut visited = vec![0_u64; words];
        let mut saved = vec![None; self.captures.len() * 2];
        let mut jobs = vec![Job::Try { step: 0, at: 0 }];
        while let Some(next) = jobs.pop() {
            let (mut step, mut at) = match next {
                Job::Try { step, at } => (step, at),
                Job::Restore { slot, old } => {
                    saved[slot] = old;
                    continue;
                }
            };
            loop {
                let bit = step * width + at;
                if visited[bit / 64] & (1 << (bit % 64)) != 0 {
                    break;
                }
                visited[bit / 64] |= 1 << (bit % 64);
                *left = left.checked_sub(1)?;
                match &self.steps[step] {
                    Step::Literal { text, any_case } => {
                        if !starts_with(uri, at, text, *any_case) {
                            break;
                        }
                        at += text.len();
                        step += 1;
                    }
                    Step::Character { strict, lenient } => {
                        let set = if mode == Mode::Strict { *strict } else { *lenient };
                        let Some(length) = character(uri, at, set) else { break };
                        at += length;
                        step += 1;
                    }
                    Step::Split { first, second } => {
                        jobs.push(Job::Try { step: *second, at });
                        step = *first;
                    }
                    Step::Jump(to) => step = *to,
                    Step::Save(slot) => {
                        jobs.push(Job::Restore { slot: *slot, old: saved[*slot] });
                        saved[*slot] = Some(at);
                        step += 1;
                    }
                    Step::End if at == uri.len() => {
                        return Some(saved.chunks(2).map(|pair| pair[0].zip(pair[1])).collect());
                    }
                    Step::End => break,
                }
            }
        }
        None
    }
}

enum Job {
    Try { step: usize, at: usize },
    Restore { slot: usize, old: Option<usize> },
}

fn starts_with(uri: &str, at: usize, text: &str, any_case: bool) -> bool {
    let Some(found) = uri.as_bytes().get(at..at + text.len()) else { return false };
    if any_case { found.eq_ignore_ascii_case(text.as_bytes()) } else { found == text.as_bytes() }
}

/// Whether the pairs of `next` may be mixed with those before it.
fn continues(first: Operator, next: Operator) -> bool {
    match next {
        Operator::Parameter => first == Operator::Parameter,
        Operator::Continuation => matches!(first, Operator::Query | Operator::Continuation),
        _ => false,
    }
}

fn refuse_ambiguity(parts: &[Part]) -> Result<(), TemplateError> {
    let mut seen = std::collections::HashSet::new();
    let mut before: Option<&Expression> = None;
    for part in parts {
        let Part::Expression(expression) = part else {
            before = None;
            continue;
        };
        let adjacent = |first: &Variable, second: &Variable| TemplateError::Adjacent {
            at: second.at,
            first: first.name.clone(),
            second: second.name.clone(),
        };
        if let Some((last, first)) =
            before.and_then(|before| before.variables.last()).zip(expression.variables.first())
            && !before.is_some_and(|before| separates(before.operator, expression.operator))
        {
            return Err(adjacent(last, first));
        }
        for variable in &expression.variables {
            if !seen.insert(variable.name.as_str()) {
                return Err(TemplateError::Duplicate { at: variable.at, name: variable.name.clone() });
            }
        }
        if !expression.operator.named() {
            // A list that is followed by another value with the same separator.
            for pair in expression.variables.windows(2) {
                if pair[0].explode {
                    return Err(adjacent(&pair[0], &pair[1]));
                }
            }
        }
        before = Some(expression);
    }
    Ok(())
}

/// Whether the lead of `next` cannot occur in a value of `before`.
fn separates(before: Operator, next: Operator) -> bool {
    match before {
        Operator::Fragment => false,
        Operator::Reserved => matches!(next, Operator::Query | Operator::Fragment),
        _ => !next.lead().is_empty(),
    }
}

/// The position in the template relative to the authority, which is case-insensitive.
enum Authority {
    Before,
    Inside,
    After,
}

impl Authority {
    fn pass(&mut self, lead: &str) {
        if !matches!((&self, lead), (Self::Inside, "" | ".")) {
            *self = Self::After;
        }
    }

    /// Returns the number of leading bytes of `text` that are case-insensitive.
    fn caseless(&mut self, text: &str) -> usize {
        let start = match self {
            Self::After => return 0,
            Self::Inside => 0,
            Self::Before => {
                let scheme = text.find(':').filter(|&end| !text[..end].contains(['/', '?', '#']));
                match scheme {
                    Some(end) if text[end..].starts_with("://") => end + 3,
                    scheme => {
                        *self = Self::After;
                        return scheme.unwrap_or(0);
                    }
                }
            }
        };
        *self = Self::Inside;
        let end = text[start..].find(['/', '?', '#']).map(|end| start + end);
        if end.is_some() {
            *self = Self::After;
        }
        end.unwrap_or(text.len())
    }
}

struct Compiler {
    steps: Vec<Step>,
    captures: Vec<Capture>,
    variables: usize,
}

impl Compiler {
    fn literal(&mut self, text: &str, authority: &mut Authority) {
        let text = match authority {
            Authority::Before => Uri::of(text).as_str().to_owned(),
            _ => normalise(text).unwrap_or_else(|| text.to_owned()),
        };
        let end = authority.caseless(&text);
        for (piece, any_case) in [(&text[..end], true), (&text[end..], false)] {
            if !piece.is_empty() {
                self.steps.push(Step::Literal { text: piece.to_owned(), any_case });
            }
        }
    }

    /// Compiles values without names, in order. The first one is required for some operators.
    fn values(&mut self, expression: &Expression, rest: &[Part]) {
        let operator = expression.operator;
        let mut absent = Vec::new();
        for (i, variable) in expression.variables.iter().enumerate() {
            let before = if i == 0 { operator.lead() } else { operator.separator() };
            if !before.is_empty() {
                absent.push(self.split());
                self.exactly(before);
            }
            let capture = self.captures.len();
            self.captures.push(Capture::Single { operator, variable: self.variables });
            self.variables += 1;

            let (strict, lenient) = alphabet(expression, variable, rest);
            // `{name}{.extension}`: the extension is not part of the name.
            let lazy =
                matches!(rest.first(), Some(Part::Expression(next)) if next.operator == Operator::Label);
            self.steps.push(Step::Save(capture * 2));
            let start = self.steps.len();
            self.characters(&Step::Character { strict, lenient }, variable.prefix, lazy);
            if variable.explode {
                let end = self.split();
                self.exactly(operator.separator());
                self.steps.push(Step::Jump(start));
                self.land(&[end]);
            }
            self.steps.push(Step::Save(capture * 2 + 1));
        }
        self.land(&absent);
    }

    /// Compiles values with names, in any order. All are optional.
    fn pairs(&mut self, group: &[&Expression]) {
        let operator = group[0].operator;
        let capture = self.captures.len();
        let variables: Vec<_> = group.iter().flat_map(|expression| &expression.variables).collect();
        self.captures.push(Capture::Pairs {
            separator: if operator == Operator::Parameter { ';' } else { '&' },
            variables: (self.variables..self.variables + variables.len()).collect(),
        });
        self.variables += variables.len();

        let mut lead = Set::of(operator.lead().as_bytes());
        if group.len() > 1 {
            // When nothing of the first expression is there, the next one still starts in its own way.
            lead = lead.and(Set::of(group[1].operator.lead().as_bytes()));
        }
        let absent = self.split();
        self.steps.push(Step::Character { strict: lead, lenient: lead });
        self.steps.push(Step::Save(capture * 2));
        let pair = self.steps.len();
        let mut named = Vec::new();
        for (i, variable) in variables.iter().enumerate() {
            let other = (i + 1 < variables.len()).then(|| self.split());
            self.exactly(&normalise(&variable.name).unwrap_or_else(|| variable.name.clone()));
            named.push(self.steps.len());
            self.steps.push(Step::Jump(0));
            if let Some(other) = other {
                self.land(&[other]);
            }
        }
        let value = self.steps.len();
        for jump in named {
            self.steps[jump] = Step::Jump(value);
        }
        let mut bare = vec![self.split()];
        self.exactly("=");
        bare.push(self.split());
        let separator = Set::of(operator.separator().as_bytes());
        let strict = Set::UNRESERVED.and(Set::of(b","));
        let lenient = match operator {
            Operator::Parameter => strict.and(Set::of(b"!$'()*+:@=")),
            _ => strict.and(Set::of(b"!$'()*+:@=;/?")),
        };
        self.characters(&Step::Character { strict, lenient }, None, false);
        self.land(&bare);
        let end = self.split();
        self.steps.push(Step::Character { strict: separator, lenient: separator });
        self.steps.push(Step::Jump(pair));
        self.land(&[end]);
        self.steps.push(Step::Save(capture * 2 + 1));
        self.land(&[absent]);
    }

    /// Compiles one character or more.
    fn characters(&mut self, one: &Step, limit: Option<usize>, lazy: bool) {
        let start = self.steps.len();
        self.steps.push(one.clone());
        match limit {
            None => {
                let (again, on) = (start, start + 2);
                let (first, second) = if lazy { (on, again) } else { (again, on) };
                self.steps.push(Step::Split { first, second });
            }
            Some(limit) => {
                // One step past the limit is enough for the template to be refused.
                let mut out = Vec::new();
                for _ in 1..limit.min(MAX_STEPS) {
                    out.push(self.split());
                    self.steps.push(one.clone());
                }
                self.land(&out);
            }
        }
    }

    fn exactly(&mut self, text: &str) {
        self.steps.push(Step::Literal { text: text.to_owned(), any_case: false });
    }

    /// Adds a split between the next step and the target that [`land`](Self::land) sets.
    fn split(&mut self) -> usize {
        let here = self.steps.len();
        self.steps.push(Step::Split { first: here + 1, second: here + 1 });
        here
    }

    fn land(&mut self, splits: &[usize]) {
        let here = self.steps.len();
        for &split in splits {
            self.steps[split] = Step::Split { first: split + 1, second: here };
        }
    }
}

/// Returns the characters of a value: those that its operator leaves unencoded, less those that end it.
fn alphabet(expression: &Expression, variable: &Variable, rest: &[Part]) -> (Set, Set) {
    let (comma, dot) = (Set::of(b","), Set::of(b"."));
    let alone = expression.variables.len() == 1 && !variable.explode;
    let forgiven = Set::UNRESERVED.and(Set::of(b"!$'()*+:@="));
    match expression.operator {
        Operator::Reserved | Operator::Fragment => {
            let mut set = if alone { Set::ANY } else { Set::ANY.without(comma) };
            for stop in ["?", "#"] {
                let later = rest.iter().any(|part| match part {
                    Part::Literal(text) => text.contains(stop),
                    Part::Expression(next) => next.operator.lead() == stop,
                });
                if later {
                    set = set.without(Set::of(stop.as_bytes()));
                }
            }
            (set, set)
        }
        Operator::Label => {
            let strict = Set::UNRESERVED.without(dot).and(comma);
            (strict, if alone { forgiven.and(comma) } else { forgiven.without(dot).and(comma) })
        }
        Operator::Path if variable.explode => (Set::UNRESERVED, forgiven.and(comma)),
        Operator::Path => (Set::UNRESERVED.and(comma), forgiven.and(comma)),
        _ if alone => (Set::UNRESERVED.and(comma), forgiven.and(comma)),
        _ => (Set::UNRESERVED, forgiven),
    }
}
