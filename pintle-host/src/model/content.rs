use pintle::types::schema::{CallToolResult, ContentBlock, ResourceBody, ResourceContents};

/// A part of a result, in the kinds that model APIs have.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ContentPart {
    Text(String),
    Image { mime_type: String, data: String },
    Audio { mime_type: String, data: String },
}

/// The media types of images that all model APIs take.
const IMAGES: &[&str] = &["image/gif", "image/jpeg", "image/png", "image/webp"];

/// The parts of a result. Structured content is shown if there is nothing else: servers repeat it as text.
pub(super) fn parts(result: &CallToolResult) -> Vec<ContentPart> {
    let mut parts: Vec<ContentPart> = result.content.iter().map(part).collect();
    if parts.is_empty() {
        parts
            .extend(result.structured_content.as_ref().map(|content| ContentPart::Text(content.to_string())));
    }
    parts
}

fn part(block: &ContentBlock) -> ContentPart {
    match block {
        ContentBlock::Text(text) => ContentPart::Text(text.text.clone()),
        ContentBlock::Image(image) => image_part(&image.mime_type, &image.data, "an image"),
        ContentBlock::Audio(audio) => {
            ContentPart::Audio { mime_type: audio.mime_type.clone(), data: audio.data.clone() }
        }
        ContentBlock::ResourceLink(link) => {
            let description = link.description.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
            ContentPart::Text(format!("[{}]({}){description}", link.name, link.uri))
        }
        ContentBlock::Resource(embedded) => resource_part(&embedded.resource),
        other => ContentPart::Text(serde_json::to_string(other).unwrap_or_default()),
    }
}

fn resource_part(resource: &ResourceContents) -> ContentPart {
    match &resource.body {
        ResourceBody::Text(text) => ContentPart::Text(text.clone()),
        ResourceBody::Blob(data) => {
            let mime_type = resource.mime_type.as_deref().unwrap_or("application/octet-stream");
            image_part(mime_type, data, &resource.uri)
        }
    }
}

fn image_part(mime_type: &str, data: &str, name: &str) -> ContentPart {
    if IMAGES.contains(&mime_type) {
        return ContentPart::Image { mime_type: mime_type.to_owned(), data: data.to_owned() };
    }
    ContentPart::Text(omitted(name, mime_type, data))
}

/// The text in place of something that a model API does not take.
pub(super) fn omitted(name: &str, mime_type: &str, data: &str) -> String {
    format!("[{name}: {mime_type}, {} bytes, not shown]", data.len() / 4 * 3)
}

impl ContentPart {
    /// The text, or what is shown in place of it.
    pub(super) fn into_text(self) -> Result<String, Self> {
        match self {
            Self::Text(text) => Ok(text),
            Self::Audio { mime_type, data } => Ok(omitted("a sound", &mime_type, &data)),
            image @ Self::Image { .. } => Err(image),
        }
    }
}
