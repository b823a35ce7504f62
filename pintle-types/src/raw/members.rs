use super::decoded::DecodedMember;

/// The spans of a member in the text: its name, without quotes, and its value.
///
/// Names are stored as serde_json prints them, so a name without quotes, backslashes and control characters (all of
/// the protocol's) equals its stored form.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Member {
    pub(super) name: (u32, u32),
    pub(super) value: (u32, u32),
}

/// The index of an object: the spans of its members in its text, in order.
///
/// `plain` means that no name has an escape. Then a name can be compared with the text as it is.
#[derive(Clone)]
pub(crate) enum Members {
    /// Up to three members of a short text, without an allocation. The variant is no larger than a vector.
    Few {
        spans: [[u16; 4]; FEW],
        count: u8,
        plain: bool,
    },
    Many(Box<MemberList>),
}

/// The members of an object that has many, or a long text.
pub(crate) struct MemberList {
    list: Vec<Member>,
    plain: bool,
    decoded: Option<DecodedMember>,
}

/// A copy has no decoded strings: they would double what it takes.
impl Clone for MemberList {
    fn clone(&self) -> Self {
        Self { list: self.list.clone(), plain: self.plain, decoded: None }
    }
}

pub(super) const FEW: usize = 3;

impl Members {
    pub(super) fn new() -> Self {
        Self::Few { spans: [[0; 4]; FEW], count: 0, plain: true }
    }

    pub(super) fn is_plain(&self) -> bool {
        match self {
            Self::Few { plain, .. } => *plain,
            Self::Many(many) => many.plain,
        }
    }

    /// Records whether the added names are plain.
    pub(super) fn note(&mut self, added: bool) {
        match self {
            Self::Few { plain, .. } => *plain &= added,
            Self::Many(many) => many.plain &= added,
        }
    }

    pub(super) fn push(&mut self, member: Member) {
        if let Self::Few { spans, count, .. } = self
            && let (Some(span), Some(short)) = (spans.get_mut(usize::from(*count)), member.short())
        {
            *span = short;
            *count += 1;
            return;
        }
        self.grow().list.push(member);
    }

    /// Sets the end of the last member's value.
    pub(super) fn end(&mut self, end: u32) {
        if let Self::Few { spans, count, .. } = self
            && let Ok(end) = u16::try_from(end)
        {
            if let Some(span) = spans.get_mut(usize::from(*count).wrapping_sub(1)) {
                span[3] = end;
            }
            return;
        }
        if let Some(member) = self.grow().list.last_mut() {
            member.value.1 = end;
        }
    }

    fn grow(&mut self) -> &mut MemberList {
        if let Self::Few { plain, .. } = *self {
            let mut list = Vec::with_capacity(4 * FEW);
            list.extend(self.iter());
            *self = Self::Many(Box::new(MemberList { list, plain, decoded: None }));
        }
        match self {
            Self::Many(many) => many,
            Self::Few { .. } => unreachable!("it has grown"),
        }
    }

    /// Keeps the decoded strings of a member.
    pub(super) fn set_decoded(&mut self, member: DecodedMember) {
        self.grow().decoded = Some(member);
    }

    /// Returns the decoded strings of a member, if they were kept.
    pub(super) fn decoded(&self, name: &str) -> Option<&DecodedMember> {
        match self {
            Self::Few { .. } => None,
            Self::Many(many) => many.decoded.as_ref().filter(|member| member.is(name)),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Few { count, .. } => usize::from(*count),
            Self::Many(many) => many.list.len(),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Member> {
        let (few, many): (&[_], &[_]) = match self {
            Self::Few { spans, count, .. } => (spans.get(..usize::from(*count)).unwrap_or_default(), &[]),
            Self::Many(many) => (&[], &many.list),
        };
        few.iter().map(Member::long).chain(many.iter().copied())
    }

    /// Returns the value of a member, given its name as it is printed.
    pub(super) fn value<'a>(&self, text: &'a str, name: &str) -> Option<&'a str> {
        // As bytes: whether a character begins and ends there need not be asked.
        let is_it = |start: usize, end: usize| text.as_bytes().get(start..end) == Some(name.as_bytes());
        match self {
            Self::Few { spans, count, .. } => {
                let length = u16::try_from(name.len()).ok()?;
                for [from, to, start, end] in spans.get(..usize::from(*count))? {
                    if to - from == length && is_it((*from).into(), (*to).into()) {
                        return text.get(usize::from(*start)..usize::from(*end));
                    }
                }
                None
            }
            Self::Many(many) => {
                let is_it = |member: &&Member| is_it(member.name.0 as usize, member.name.1 as usize);
                many.list.iter().find(is_it).map(|member| slice(text, member.value))
            }
        }
    }

    /// Returns a name that occurs twice. Many names are sorted, so that a hostile object does not cost quadratic time.
    pub(super) fn repeated<'a>(&self, text: &'a str) -> Option<&'a str> {
        let name = |member: Member| slice(text, member.name);
        if let Self::Few { spans, count, .. } = self {
            // Nearly always they differ in length already.
            let spans = spans.get(..usize::from(*count)).unwrap_or_default();
            let length = |span: &[u16; 4]| span[1] - span[0];
            let alike = |at: usize, span| spans.iter().take(at).any(|other| length(other) == length(span));
            if !spans.iter().enumerate().any(|(at, span)| alike(at, span)) {
                return None;
            }
        }
        if self.len() <= 12 {
            return self.iter().enumerate().find_map(|(at, member)| {
                self.iter().take(at).any(|other| name(other) == name(member)).then(|| name(member))
            });
        }
        let mut names: Vec<&str> = self.iter().map(name).collect();
        names.sort_unstable();
        names
            .windows(2)
            .find_map(|pair| (pair.first() == pair.last()).then(|| pair.first().copied()).flatten())
    }
}

impl Member {
    fn short(self) -> Option<[u16; 4]> {
        let Self { name, value } = self;
        // Each lies behind the one before, but for the end of a value that is still being written.
        u16::try_from(value.0.max(value.1)).ok()?;
        Some([name.0 as u16, name.1 as u16, value.0 as u16, value.1 as u16])
    }

    fn long(short: &[u16; 4]) -> Self {
        let [name, to, value, end] = short.map(u32::from);
        Self { name: (name, to), value: (value, end) }
    }
}

pub(super) fn slice(text: &str, (start, end): (u32, u32)) -> &str {
    text.get(start as usize..end as usize).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_small() {
        // Errors that hold one stay below what clippy calls large.
        assert!(size_of::<crate::RawObject>() <= 56, "{}", size_of::<crate::RawObject>());
    }

    #[test]
    fn few_and_many_are_kept_in_their_order() {
        for (step, end) in [(1, 1), (1, 1 << 20), (1 << 15, 1 << 15), (1 << 20, 1 << 20)] {
            let mut members = Members::new();
            for count in 0..10_u32 {
                assert!(members.iter().map(|member| member.name.0).eq((0..count).map(|at| at * step)));
                assert!(members.iter().all(|member| member.value.1 == member.name.0 + end));
                let start = count * step;
                members.push(Member { name: (start, start), value: (start, 0) });
                members.end(start + end);
                assert_eq!(members.len(), count as usize + 1);
            }
        }
    }
}
