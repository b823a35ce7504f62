//! Servers: building, running and extending them.
//!
//! A [`Server`] consists of routes. [`tool`], [`prompt`], [`resource`] and [`template`] create them from async functions; the attributes
//! of the same names generate these calls. The types of the parameters select the values that a handler receives:
//!
//! | parameter | value |
//! |---|---|
//! | [`Args<T>`](Args) | the arguments, decoded into a type whose schema is published as that of the tool |
//! | [`State<S>`](State) | a value that was added with [`Server::with_state`] |
//! | [`Cx`] | the context of the call: its caller, progress, log messages, questions to the client |
//! | [`Extension<T>`](Extension) | a value that was attached to the request, for example by an HTTP layer |
//! | [`Vars<T>`](Vars) | the variables of a resource template |
//! | [`Arguments`], [`PromptArguments`] | the arguments without decoding |
//!
//! The return type of a handler implements [`IntoToolResult`], [`IntoPromptResult`] or [`IntoResourceResult`].

mod access;
pub(crate) mod changes;
mod clock;
pub(crate) mod core;
mod form;
pub(crate) mod gates;
mod hex;
#[cfg(feature = "http-server")]
pub mod http;
pub(crate) mod judged;
mod listen;
#[cfg(not(feature = "http-server"))]
mod missing_feature;
mod mounts;
mod ordered_map;
mod printed_list;
pub(crate) mod random;
pub(crate) mod replay;
pub(crate) mod schema;
pub(crate) mod seal;
mod serving;
pub mod store;
mod stream;

pub use self::core::catalogue::completion::{IntoValues, Partial, Values};
pub use self::core::catalogue::custom::{MethodRoute, method, raw_method};
pub use self::core::catalogue::declared::{Declared, IntoRoute, TextArgument, ToolArgument};
pub use self::core::catalogue::edits::CatalogueEdits;
pub use self::core::catalogue::extension::{Installation, ProtocolExtension};
pub use self::core::catalogue::prompt::{IntoPromptResult, PromptArguments, PromptRoute, prompt};
pub use self::core::catalogue::resource::{IntoResourceResult, ResourceRoute, resource};
pub use self::core::catalogue::source::{PageRequest, ResourcePage, ResourceSource, SourceRoute, source};
pub use self::core::catalogue::template::{TemplateRoute, template};
pub use self::core::catalogue::tool::{ToolRoute, tool};
pub use self::core::catalogue::{lists::ListKind, route::Route};
pub use self::core::cx::detached::{DetachRequest, DetachedCall, ToolStart};
pub use self::core::cx::elicit::Elicited;
pub use self::core::cx::outgoing::{OutgoingNext, OutgoingRequest};
pub use self::core::cx::{Cx, Target};
pub use self::core::driver::context::HttpHead;
pub use self::core::driver::detached::{Checkpoint, DetachedEvent, DetachedQuestion};
pub use self::core::driver::layer::{Next, around};
pub use self::core::gate::{
    decision::{Access, Decision, Gate},
    request::GateRequest,
};
pub use self::core::handler::blocking::{Blocking, blocking};
pub use self::core::handler::error::{HandlerError, RequestError, ToolError};
pub use self::core::handler::extract::{Args, Description, Extension, State};
pub use self::core::handler::vars::Vars;
pub use self::core::handler::{Arguments, FromCall, Handler, IntoToolResult, Json, JsonResult};
pub use self::core::hooks::HookResult;
pub use self::core::provider::entry::ProvidedEntry;
pub use self::core::provider::subscription::ProviderSubscription;
pub use self::core::provider::{Provider, changes::ProviderChanges};
pub use self::core::provider::{
    info::{ListHints, ProviderInfo, ReportPart, ServerKey},
    lookup::Lookup,
    watch::{Watch, WatchFuture},
};
pub use self::core::scope::{Entry, Scope};
pub use self::core::server::Server;
pub use self::core::sessions::connection::{ConnectionEvent, Opened};
pub use self::core::sessions::handle::{SessionError, SessionHandle};
pub use self::core::weak::WeakServer;
pub use self::gates::condition::{Condition, ConditionTests};
pub use self::gates::rule::{HintMatch, RateLimit, RateScope, Rule, RuleDecision};
pub use self::gates::{Explanation, RuleSet, Rules, audit::AuditRecord};
pub use self::judged::arguments::{ArgumentType, Reading};
pub use self::mounts::search::ToolSearch;
pub use self::mounts::transform::{
    Transform, edit::EntryEdit, pattern::NamePattern, result_limit::ResultLimit,
};
pub use self::schema::part::SchemaPart;
pub use self::seal::StateKeys;
pub use self::{core::provider::page::ProviderPage, core::provider::prefix::Prefix, mounts::mount::Mount};
pub use access::authenticated::{Authenticated, MissingRights};
pub use access::tls_facts::TlsFacts;
pub use access::{caller::Caller, peer_address::PeerAddress, principal::Principal};
pub use changes::notice::Notice;
pub(crate) use clock::now as unix_millis;
pub use form::{Field, Form, FormError};
pub(crate) use hex::hex;
pub use listen::Listen;
#[cfg(not(feature = "http-server"))]
pub use missing_feature::HttpServerFeature;
pub use pintle_proto::inputs::{Answer, AskError, CallRecord, Question, RecordedRights};
pub use pintle_proto::server::{CacheHint, Outcome, Reply};
pub use serving::{Serving, ServingHandle};
