//! What a template is compiled to, and how it runs.
//!
//! A program is a small automaton. It runs by backtracking, and remembers every pair of step and place that it has
//! been at: none is tried twice, so a match takes at most (steps × bytes of the URI), whatever either looks like.

use super::{
    error::TemplateError,
    parse::{Expression, Operator, Part, Variable},
    percent::{Set, character, normalise},
};

/// More steps than this no template has that somebody wrote by hand.
const MAX_STEPS: usize = 512;

/// How a template is matched.
#[derive(Clone, Debug)]
pub(super) struct Program {
    steps: Vec<Step>,
    /// What each captured place holds.
    pub(super) places: Vec<Place>,
}

/// A part of the URI that is captured.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// The value of one variable, as the number of the variable.
    One { operator: Operator, variable: usize },
    /// `name=value` pairs, in any order, of the variables with these numbers.
    Pairs { separator: char, variables: Vec<usize> },
}

/// Which characters a variable may have that are not percent-encoded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Reading {
    /// Those that an expansion has.
    Strict,
    /// Also those that people forget to encode, where nothing else can be meant.
    Lenient,
}

#[derive(Clone, Debug)]
enum Step {
    /// This text. Names of schemes and hosts have no case.
    Literal {
        text: String,
        any_case: bool,
    },
    /// One character, encoded or not.
    Character {
        strict: Set,
        lenient: Set,
    },
    /// The first, and if that leads nowhere the second.
    Split {
        first: usize,
        second: usize,
    },
    Jump(usize),
    Save(usize),
    End,
}

impl Program {
    /// Compiles a template, or says why nobody could tell what its variables are.
    pub(super) fn compile(parts: &[Part], bytes: usize) -> Result<Self, TemplateError> {
        refuse_ambiguity(parts)?;
        let mut compiler = Compiler { steps: Vec::new(), places: Vec::new(), variables: 0 };
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
        Ok(Self { steps: compiler.steps, places: compiler.places })
    }

    /// How many steps it has.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether a normalised URI starts as the template does. Most URIs that do not match stop here.
    pub(super) fn may_match(&self, uri: &str) -> bool {
        match self.steps.first() {
            Some(Step::Literal { text, any_case }) => starts_with(uri, 0, text, *any_case),
            _ => true,
        }
    }

    /// The captured places of a normalised URI that matches: for each, from where to where.
    pub(super) fn run(&self, uri: &str, reading: Reading) -> Option<Vec<Option<(usize, usize)>>> {
        let width = uri.len() + 1;
        let mut been = vec![0_u64; (self.steps.len() * width).div_ceil(64)];
        let mut saved = vec![None; self.places.len() * 2];
        let mut todo = vec![Todo::Try { step: 0, at: 0 }];
        while let Some(next) = todo.pop() {
            let (mut step, mut at) = match next {
                Todo::Try { step, at } => (step, at),
                Todo::Restore { slot, old } => {
                    saved[slot] = old;
                    continue;
                }
            };
            loop {
                let bit = step * width + at;
                if been[bit / 64] & (1 << (bit % 64)) != 0 {
                    break;
                }
                been[bit / 64] |= 1 << (bit % 64);
                match &self.steps[step] {
                    Step::Literal { text, any_case } => {
                        if !starts_with(uri, at, text, *any_case) {
                            break;
                        }
                        at += text.len();
                        step += 1;
                    }
                    Step::Character { strict, lenient } => {
                        let set = if reading == Reading::Strict { *strict } else { *lenient };
                        let Some(length) = character(uri, at, set) else { break };
                        at += length;
                        step += 1;
                    }
                    Step::Split { first, second } => {
                        todo.push(Todo::Try { step: *second, at });
                        step = *first;
                    }
                    Step::Jump(to) => step = *to,
                    Step::Save(slot) => {
                        todo.push(Todo::Restore { slot: *slot, old: saved[*slot] });
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

enum Todo {
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

/// Whether what `next` starts with cannot be in a value of `before`.
fn separates(before: Operator, next: Operator) -> bool {
    match before {
        Operator::Fragment => false,
        Operator::Reserved => matches!(next, Operator::Query | Operator::Fragment),
        _ => !next.lead().is_empty(),
    }
}

/// Where we are in the template, as to the case of letters.
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

    /// How many bytes of `text`, from its start, have no case.
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
    places: Vec<Place>,
    variables: usize,
}

impl Compiler {
    fn literal(&mut self, text: &str, authority: &mut Authority) {
        let text = normalise(text).unwrap_or_else(|| text.to_owned());
        let end = authority.caseless(&text);
        for (piece, any_case) in [(&text[..end], true), (&text[end..], false)] {
            if !piece.is_empty() {
                self.steps.push(Step::Literal { text: piece.to_owned(), any_case });
            }
        }
    }

    /// Values without names, in order; the first of some operators has to be there.
    fn values(&mut self, expression: &Expression, rest: &[Part]) {
        let operator = expression.operator;
        let mut absent = Vec::new();
        for (i, variable) in expression.variables.iter().enumerate() {
            let before = if i == 0 { operator.lead() } else { operator.separator() };
            if !before.is_empty() {
                absent.push(self.split());
                self.exactly(before);
            }
            let place = self.places.len();
            self.places.push(Place::One { operator, variable: self.variables });
            self.variables += 1;

            let (strict, lenient) = alphabet(expression, variable, rest);
            // `{name}{.extension}`: the extension is not part of the name.
            let lazy =
                matches!(rest.first(), Some(Part::Expression(next)) if next.operator == Operator::Label);
            self.steps.push(Step::Save(place * 2));
            let start = self.steps.len();
            self.characters(&Step::Character { strict, lenient }, variable.prefix, lazy);
            if variable.explode {
                let end = self.split();
                self.exactly(operator.separator());
                self.steps.push(Step::Jump(start));
                self.land(&[end]);
            }
            self.steps.push(Step::Save(place * 2 + 1));
        }
        self.land(&absent);
    }

    /// Values with names, in any order; all may be absent.
    fn pairs(&mut self, group: &[&Expression]) {
        let operator = group[0].operator;
        let place = self.places.len();
        let variables: Vec<_> = group.iter().flat_map(|expression| &expression.variables).collect();
        self.places.push(Place::Pairs {
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
        self.steps.push(Step::Save(place * 2));
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
        self.steps.push(Step::Save(place * 2 + 1));
        self.land(&[absent]);
    }

    /// One character or more.
    fn characters(&mut self, one: &Step, most: Option<usize>, lazy: bool) {
        let start = self.steps.len();
        self.steps.push(one.clone());
        match most {
            None => {
                let (again, on) = (start, start + 2);
                let (first, second) = if lazy { (on, again) } else { (again, on) };
                self.steps.push(Step::Split { first, second });
            }
            Some(most) => {
                // One step past the limit is enough for the template to be refused.
                let mut out = Vec::new();
                for _ in 1..most.min(MAX_STEPS) {
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

    /// Goes on here, or else where [`land`](Self::land) says.
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

/// The characters of a value: those that its operator leaves as they are, less those that end it.
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
