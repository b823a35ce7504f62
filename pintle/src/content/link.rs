use pintle_types::{
    Meta,
    schema::{Annotations, ContentBlock, Resource},
};

/// A link to a resource that the client may read.
///
/// Clients that know no links get a line of text with the URI.
///
/// ```
/// use pintle::content::Link;
///
/// async fn find() -> Vec<pintle::types::schema::ContentBlock> {
///     let note = Link::new("note://17", "shopping").title("Shopping list").mime_type("text/plain");
///     vec!["Found one:".into(), note.into()]
/// }
///
/// let find = pintle::server::tool("find", find);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Link(Resource);

impl Link {
    /// A link with a name.
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self(Resource::new(uri, name))
    }

    /// What a person sees instead of the name.
    #[must_use]
    pub fn title(mut self, text: impl Into<String>) -> Self {
        self.0.title = Some(text.into());
        self
    }

    /// What it leads to.
    #[must_use]
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.0.description = Some(text.into());
        self
    }

    /// Of what type that is.
    #[must_use]
    pub fn mime_type(mut self, mime: impl Into<String>) -> Self {
        self.0.mime_type = Some(mime.into());
        self
    }

    /// How many bytes it has.
    #[must_use]
    pub fn size(mut self, bytes: u32) -> Self {
        self.0.size = Some(bytes.into());
        self
    }

    /// Whom it is for, and how much it matters.
    #[must_use]
    pub fn annotations(mut self, annotations: Annotations) -> Self {
        self.0.annotations = Some(annotations);
        self
    }

    /// Anything else that clients may want to know.
    #[must_use]
    pub fn meta(mut self, meta: Meta) -> Self {
        self.0.meta = Some(meta);
        self
    }
}

/// A link to a resource as it is listed.
impl From<Resource> for Link {
    fn from(resource: Resource) -> Self {
        Self(resource)
    }
}

impl From<Link> for ContentBlock {
    fn from(link: Link) -> Self {
        Self::ResourceLink(link.0)
    }
}
