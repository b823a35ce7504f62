use serde::de::DeserializeOwned;

use super::decode::{self, DecodeError};

/// The variables of a URI that matched a template.
///
/// ```
/// use pintle_uri::Template;
/// use serde::Deserialize;
///
/// #[derive(Deserialize)]
/// struct Lines {
///     file: String,
///     from: Option<u32>,
/// }
///
/// let template = Template::parse("source://{+file}{?from,to}")?;
/// let vars = template.matches("source://src/main.rs?from=7").unwrap();
/// assert_eq!(vars.get("file"), Some("src/main.rs"));
///
/// let lines: Lines = vars.decode()?;
/// assert_eq!((lines.file.as_str(), lines.from), ("src/main.rs", Some(7)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Vars {
    /// Every variable of the template, in its order.
    pub(super) all: Vec<(String, Option<Found>)>,
}

/// The value of one variable.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Found {
    pub(super) text: String,
    pub(super) items: Vec<String>,
    /// Whether the variable is a list in the template.
    pub(super) list: bool,
}

impl Vars {
    /// Returns the decoded text of a variable; of a list, with its separators. `None` if it is absent.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.find(name).map(|found| found.text.as_str())
    }

    /// Returns the decoded items of a variable: those of `{name*}`, or the parts between commas. `None` if it is absent.
    pub fn list(&self, name: &str) -> Option<&[String]> {
        self.find(name).map(|found| found.items.as_slice())
    }

    /// Returns the variables that are present with their texts, in the order of the template.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.all.iter().filter_map(|(name, found)| Some((name.as_str(), found.as_ref()?.text.as_str())))
    }

    /// Deserializes the variables: a struct or a map by name, a tuple by order, or a single value if the template has one
    /// variable.
    ///
    /// Numbers and booleans are parsed from their text, enums by the names of their variants, `Vec` from a list, and `Option`
    /// is `None` when a variable is absent. With `#[serde(flatten)]` everything is text.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, DecodeError> {
        T::deserialize(decode::VarsDeserializer(self))
    }

    fn find(&self, name: &str) -> Option<&Found> {
        self.all.iter().find_map(|(known, found)| found.as_ref().filter(|_| known == name))
    }
}

/// Collects variables that do not come from a URI, by name. None of them is a list.
///
/// ```
/// use pintle_uri::Vars;
///
/// let vars = Vars::from_iter([("page".to_owned(), "7".to_owned())]);
/// assert_eq!(vars.decode::<u32>()?, 7);
/// # Ok::<(), pintle_uri::DecodeError>(())
/// ```
impl FromIterator<(String, String)> for Vars {
    fn from_iter<T: IntoIterator<Item = (String, String)>>(texts: T) -> Self {
        let found = |text: String| Some(Found { text, items: Vec::new(), list: false });
        Self { all: texts.into_iter().map(|(name, text)| (name, found(text))).collect() }
    }
}
