use pintle_types::{
    Meta,
    schema::{Annotations, ContentBlock, Resource},
};

/// A link to a resource that the client may read.
///
/// Clients without support for links receive a line of text with the URI.
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
    /// Creates a link with a name.
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self(Resource::new(uri, name))
    }

    /// Sets the display name.
    #[must_use]
    pub fn title(mut self, text: impl Into<String>) -> Self {
        self.0.title = Some(text.into());
        self
    }

    /// Sets the description of the target.
    #[must_use]
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.0.description = Some(text.into());
        self
    }

    /// Sets the media type of the target.
    #[must_use]
    pub fn mime_type(mut self, mime: impl Into<String>) -> Self {
        self.0.mime_type = Some(mime.into());
        self
    }

    /// Sets the size of the target in bytes.
    #[must_use]
    pub fn size(mut self, bytes: u32) -> Self {
        self.0.size = Some(bytes.into());
        self
    }

    /// Sets the annotations: audience and priority.
    #[must_use]
    pub fn annotations(mut self, annotations: Annotations) -> Self {
        self.0.annotations = Some(annotations);
        self
    }

    /// Sets the `_meta` member.
    #[must_use]
    pub fn meta(mut self, meta: Meta) -> Self {
        self.0.meta = Some(meta);
        self
    }
}

/// Creates a link from a listed resource.
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
