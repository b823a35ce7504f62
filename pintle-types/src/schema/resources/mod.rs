//! Resources: how they are listed, read and watched.

mod contents;
mod resource;

pub use contents::{ResourceBody, ResourceContents};
pub use resource::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceParams, ReadResourceResult, Resource,
    ResourceTemplate, ResourceUpdatedParams, SubscribeParams,
};
