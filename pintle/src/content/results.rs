//! Content as the result of a tool, a prompt or a resource.

use pintle_proto::server::Outcome;
use pintle_types::schema::{
    CallToolResult, ContentBlock, GetPromptResult, PromptMessage, ReadResourceResult, Role,
};

use super::{Audio, Embedded, Image, Link};
use crate::server::{IntoPromptResult, IntoResourceResult, IntoToolResult, RequestError};

macro_rules! impl_block {
    ($($content:ident)*) => {$(
        impl IntoToolResult for $content {
            fn into_tool_result(self) -> Result<CallToolResult, Outcome> {
                ContentBlock::from(self).into_tool_result()
            }
        }

        /// One message of the user.
        impl IntoPromptResult for $content {
            fn into_prompt_result(self) -> Result<GetPromptResult, RequestError> {
                Ok(GetPromptResult::new(vec![PromptMessage::new(Role::User, self.into())]))
            }
        }
    )*};
}

impl_block!(Image Audio Link Embedded);

impl IntoResourceResult for Image {
    fn into_resource_result(self, uri: &str, _: Option<&str>) -> Result<ReadResourceResult, RequestError> {
        Ok(ReadResourceResult::new(vec![self.into_contents(uri)]))
    }
}

impl IntoResourceResult for Audio {
    fn into_resource_result(self, uri: &str, _: Option<&str>) -> Result<ReadResourceResult, RequestError> {
        Ok(ReadResourceResult::new(vec![self.into_contents(uri)]))
    }
}

/// Several pieces of content, in this order.
macro_rules! impl_tuple {
    ($($part:ident)*) => {
        #[diagnostic::do_not_recommend]
        impl<$($part: Into<ContentBlock>),*> IntoToolResult for ($($part,)*) {
            #[expect(non_snake_case, reason = "one shape for any number of parts")]
            fn into_tool_result(self) -> Result<CallToolResult, Outcome> {
                let ($($part,)*) = self;
                vec![$($part.into()),*].into_tool_result()
            }
        }
    };
}

impl_tuple!(A B);
impl_tuple!(A B C);
impl_tuple!(A B C D);
