//! Blocks of content: what tools return and what models and prompts are given.

mod block;
mod kinds;

pub use block::ContentBlock;
pub use kinds::{
    AudioContent, EmbeddedResource, ImageContent, TextContent, ToolResultContent, ToolUseContent,
};
