//! Blocks of content, in the results of tools and in the messages of prompts and models.

mod block;
mod kinds;

pub use block::ContentBlock;
pub use kinds::{
    AudioContent, EmbeddedResource, ImageContent, TextContent, ToolResultContent, ToolUseContent,
};
