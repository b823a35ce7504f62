use super::{canonical::Uri, template::Template, vars::Vars};

/// The steps that one look-up may take, over all templates. Templates written by hand need far fewer.
const MAX_STEPS: usize = 1 << 18;

/// Templates that are found by their literal beginnings.
///
/// It is made once and not changed. A look-up is a binary search for the templates that begin as the URI does; only these are
/// matched, the most literal first, in a bounded number of steps.
///
/// ```
/// use pintle_uri::{Template, TemplateIndex, Uri};
///
/// let templates = ["note://{+path}", "note://inbox/{title}"].map(|text| (Template::parse(text).unwrap(), text));
/// let index = TemplateIndex::new(templates);
/// let found = index.get(&Uri::of("NOTE://inbox/milk")).unwrap();
/// assert_eq!((*found.value, found.vars.get("title")), ("note://inbox/{title}", Some("milk")));
/// ```
#[derive(Clone, Debug)]
pub struct TemplateIndex<T> {
    /// In the order of their ranks.
    templates: Box<[(Template, T)]>,
    /// In their order.
    prefixes: Box<[Prefix]>,
}

/// The literal beginning of templates.
#[derive(Clone, Debug)]
struct Prefix {
    text: Box<str>,
    /// The longest other one that this one begins with.
    shorter: Option<usize>,
    /// The positions of the templates, in the order of their ranks.
    templates: Vec<usize>,
}

/// A template that a URI matches: see [`TemplateIndex::get`].
#[derive(Debug)]
#[non_exhaustive]
pub struct TemplateMatch<'a, T> {
    /// The template.
    pub template: &'a Template,
    /// The value that it was added with.
    pub value: &'a T,
    /// The variables.
    pub vars: Vars,
}

impl<T> TemplateIndex<T> {
    /// Creates an index. Of templates that are equally literal, the first is found.
    pub fn new(templates: impl IntoIterator<Item = (Template, T)>) -> Self {
        let mut templates: Box<[_]> = templates.into_iter().collect();
        templates.sort_by_key(|(template, _)| template.rank());
        let mut by_prefix = std::collections::BTreeMap::<Box<str>, Vec<usize>>::new();
        for (at, (template, _)) in templates.iter().enumerate() {
            by_prefix.entry(Uri::of(template.prefix()).key().into()).or_default().push(at);
        }
        let mut prefixes: Vec<Prefix> = Vec::with_capacity(by_prefix.len());
        for (text, templates) in by_prefix {
            let mut shorter = prefixes.len().checked_sub(1);
            while let Some(at) = shorter.filter(|at| !text.starts_with(&*prefixes[*at].text)) {
                shorter = prefixes[at].shorter;
            }
            prefixes.push(Prefix { text, shorter, templates });
        }
        Self { templates, prefixes: prefixes.into() }
    }

    /// Returns the most literal template that a URI matches. If that takes too many steps, there is none.
    pub fn get(&self, uri: &Uri) -> Option<TemplateMatch<'_, T>> {
        self.get_within(uri, &mut { MAX_STEPS })
    }

    /// Looks up a URI, and takes each step from `left`.
    fn get_within(&self, uri: &Uri, left: &mut usize) -> Option<TemplateMatch<'_, T>> {
        let mut fitting = Vec::new();
        let key = uri.key();
        // Every beginning of the URI is one of the last that is not behind it, too.
        let mut prefix = self.prefixes.partition_point(|prefix| *prefix.text <= *key).checked_sub(1);
        while let Some(known) = prefix.and_then(|at| self.prefixes.get(at)) {
            *left = left.checked_sub(1)?;
            if key.starts_with(&*known.text) {
                fitting.extend_from_slice(&known.templates);
            }
            prefix = known.shorter;
        }
        fitting.sort_unstable();
        fitting.into_iter().filter_map(|at| self.templates.get(at)).find_map(|(template, value)| {
            let vars = template.matches_within(uri, left)?;
            Some(TemplateMatch { template, value, vars })
        })
    }

    /// Returns the number of templates.
    pub fn len(&self) -> usize {
        self.templates.len()
    }

    /// Returns whether there are no templates.
    pub fn is_empty(&self) -> bool {
        self.templates.is_empty()
    }
}

impl<T> Default for TemplateIndex<T> {
    fn default() -> Self {
        Self { templates: Box::default(), prefixes: Box::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(templates: impl IntoIterator<Item = String>) -> TemplateIndex<String> {
        TemplateIndex::new(templates.into_iter().map(|text| (Template::parse(&text).unwrap(), text)))
    }

    fn steps(index: &TemplateIndex<String>, uri: &str) -> usize {
        let mut left = MAX_STEPS;
        index.get_within(&Uri::of(uri), &mut left);
        MAX_STEPS - left
    }

    #[test]
    fn the_most_literal_template_is_found_whatever_it_begins_with() {
        let index = index(
            [
                "{+any}",
                "note://{+path}",
                "note://{folder}/plans/{n}",
                "note://in{box}",
                "note://Inbox/{title}",
            ]
            .map(str::to_owned),
        );
        for (uri, found) in [
            ("note://inbox/1", Some("note://Inbox/{title}")),
            ("NOTE://%49nbox/1", Some("note://Inbox/{title}")),
            ("note://inbox/plans/1", Some("note://{folder}/plans/{n}")),
            ("note://inbound", Some("note://in{box}")),
            ("note://x/y", Some("note://{+path}")),
            ("mail:1", Some("{+any}")),
            ("note://a/../b", None),
            ("note://100%", None),
        ] {
            assert_eq!(index.get(&Uri::of(uri)).map(|found| &**found.value), found, "{uri}");
        }
        assert!(!index.is_empty());
        assert!(TemplateIndex::<()>::default().is_empty());
    }

    #[test]
    fn templates_that_begin_otherwise_cost_nothing() {
        let count = |templates: usize| {
            let index = index((0..templates).map(|n| format!("note://{n}/{{title}}")));
            assert_eq!(index.len(), templates);
            steps(&index, "note://7/milk")
        };
        assert_eq!(count(500), count(1000));
    }

    #[test]
    fn a_look_up_costs_no_more_than_its_templates_and_its_uri_and_is_ended() {
        let templates = |n: usize| index((0..n).map(|n| format!("note://{{+a}}/{n}/{{+b}}/x")));
        let uri = |n: usize| "note://".to_owned() + &"a/".repeat(n);
        let (few, many) = (templates(10), templates(20));
        for n in [50, 100, 200] {
            let few_steps = steps(&few, &uri(n));
            assert!(steps(&many, &uri(n)) <= 2 * few_steps + 20);
            assert!(steps(&few, &uri(2 * n)) <= 2 * few_steps + 200);
        }
        let hostile = index((0..1000).map(|n| format!("note://{{+a}}/{n}{{?b}}")));
        assert!(steps(&hostile, &uri(4000)) <= MAX_STEPS);
        assert!(hostile.get(&Uri::of(&uri(4000))).is_none());
    }
}
