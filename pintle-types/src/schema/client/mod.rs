//! Requests of a server to a client: elicitation, sampling and roots.

mod elicit;
mod elicit_schema;
mod primitive_schema;
mod root;
mod sampling;

pub use elicit::{
    ElicitAction, ElicitFormParams, ElicitMode, ElicitParams, ElicitResult, ElicitUrlParams,
    ElicitationCompleteParams,
};
pub use elicit_schema::{ElicitSchema, Properties};
pub use primitive_schema::{
    BooleanSchema, EnumItems, EnumOption, EnumSchema, MultiEnumSchema, NumberSchema, PrimitiveSchema,
    StringFormat, StringSchema, TitledEnumItems, TitledEnumSchema, TitledMultiEnumSchema,
};
pub use root::{ListRootsResult, Root};
pub use sampling::{
    CreateMessageParams, CreateMessageResult, IncludeContext, ModelHint, ModelPreferences, SamplingMessage,
    StopReason, ToolChoice, ToolChoiceMode,
};
