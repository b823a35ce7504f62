//! Types that other types are made of. None of them carries `_meta`.

mod annotations;
mod capability;
mod implementation;
mod level;
mod object;
mod one_or_many;
mod progress_token;
mod related_task;
pub(crate) mod wire;

pub use annotations::{Annotations, Role};
pub use capability::{
    ClientCapabilities, ClientTaskRequests, ClientTasksCapability, ElicitationCapability, ElicitationTasks,
    PromptsCapability, ResourcesCapability, RootsCapability, SamplingCapability, SamplingTasks,
    ServerCapabilities, ServerTaskRequests, ServerTasksCapability, ToolTasks, ToolsCapability,
};
pub use implementation::{Icon, IconTheme, Implementation};
pub use level::{LoggingLevel, UnknownLevel};
pub(crate) use object::object;
pub use one_or_many::OneOrMany;
pub use progress_token::ProgressToken;
pub use related_task::RelatedTask;
