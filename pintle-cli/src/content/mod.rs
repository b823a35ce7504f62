//! Content of servers for people: text as it is, media as a line with the option that saves it.

mod media;

use std::path::Path;

use pintle::types::schema::{ContentBlock, EmbeddedResource, ResourceBody, ResourceContents};
use serde_json::Value;

use crate::{
    failure::Failure,
    output::{Text, Tone},
};
use media::Media;
pub(crate) use media::decode;

/// Prints blocks of content. Media go into a directory, if there is one.
pub(crate) fn print(blocks: &[ContentBlock], save: Option<&Path>, text: &mut Text) -> Result<(), Failure> {
    for (number, block) in blocks.iter().enumerate() {
        match block {
            ContentBlock::Text(content) => {
                text.block(&content.text);
            }
            ContentBlock::Image(image) => {
                Media::new("image", &image.mime_type, &image.data).print(number, save, text)?;
            }
            ContentBlock::Audio(audio) => {
                Media::new("audio", &audio.mime_type, &audio.data).print(number, save, text)?;
            }
            ContentBlock::ResourceLink(link) => {
                text.tone(Tone::Faint, "link: ").add(&link.uri).add("  ").line(&link.name);
            }
            ContentBlock::Resource(EmbeddedResource { resource, .. }) => {
                print_contents(resource, number, save, text)?;
            }
            block => {
                text.block(pretty(&serde_json::to_value(block).unwrap_or_default()));
            }
        }
    }
    Ok(())
}

/// Prints the contents of a resource.
fn print_contents(
    contents: &ResourceContents,
    number: usize,
    save: Option<&Path>,
    text: &mut Text,
) -> Result<(), Failure> {
    match &contents.body {
        ResourceBody::Text(body) => {
            text.block(body);
        }
        ResourceBody::Blob(data) => {
            let mime_type = contents.mime_type.as_deref().unwrap_or("application/octet-stream");
            Media::new("data", mime_type, data).print(number, save, text)?;
        }
    }
    Ok(())
}

/// Formats JSON on several lines.
pub(crate) fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}
