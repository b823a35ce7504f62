use base64::{Engine as _, engine::general_purpose::STANDARD};
use pintle_types::{
    Meta,
    schema::{Annotations, ContentBlock, EmbeddedResource, ResourceContents},
};

/// A resource with its contents, so that the client does not have to read it.
///
/// ```
/// use pintle::content::Embedded;
///
/// async fn show() -> Embedded {
///     Embedded::text("file:///main.rs", "fn main() {}").mime_type("text/x-rust")
/// }
///
/// let show = pintle::server::tool("show", show);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Embedded(EmbeddedResource);

impl Embedded {
    /// Creates a text resource.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        ResourceContents::text(uri, text).into()
    }

    /// Creates a binary resource.
    pub fn bytes(uri: impl Into<String>, bytes: impl AsRef<[u8]>) -> Self {
        ResourceContents::blob(uri, STANDARD.encode(bytes)).into()
    }

    /// Sets the media type.
    #[must_use]
    pub fn mime_type(mut self, mime: impl Into<String>) -> Self {
        self.0.resource.mime_type = Some(mime.into());
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

    /// Returns the contents.
    #[must_use]
    pub fn into_contents(self) -> ResourceContents {
        self.0.resource
    }
}

impl From<ResourceContents> for Embedded {
    fn from(contents: ResourceContents) -> Self {
        Self(EmbeddedResource::new(contents))
    }
}

impl From<Embedded> for ContentBlock {
    fn from(embedded: Embedded) -> Self {
        Self::Resource(embedded.0)
    }
}
