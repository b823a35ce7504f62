use std::sync::{Arc, OnceLock};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use pintle_proto::server::{Body, CacheHint, Outcome};
use pintle_types::{
    RawObject, RpcError,
    schema::{
        CacheScope, ListParams, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
        ListToolsResult,
    },
};

use super::ordered_map::OrderedMap;
use crate::server::{Cx, Entry, access::required::Required, state::State};

/// A list that a server has.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum ListKind {
    /// `tools/list`.
    Tools,
    /// `prompts/list`.
    Prompts,
    /// `resources/list`.
    Resources,
    /// `resources/templates/list`.
    Templates,
}

impl ListKind {
    /// What its cursors begin with.
    fn letter(self) -> u8 {
        match self {
            Self::Tools => b't',
            Self::Prompts => b'p',
            Self::Resources => b'r',
            Self::Templates => b'm',
        }
    }
}

/// `tools/list`.
pub(crate) fn tools(cx: &Cx) -> Outcome {
    let catalogue = &cx.state().catalogue;
    let sees = |route: &crate::server::ToolRoute| sees(cx, &route.required, Entry::Tool(&route.tool));
    list(cx, ListKind::Tools, &catalogue.tools, &catalogue.printed.tools, sees, |page, next| {
        let mut result = ListToolsResult::new(page.iter().map(|route| route.tool.clone()).collect());
        result.next_cursor = next;
        RawObject::from_serialize(&result)
    })
}

/// `prompts/list`.
pub(crate) fn prompts(cx: &Cx) -> Outcome {
    let catalogue = &cx.state().catalogue;
    let sees = |route: &crate::server::PromptRoute| sees(cx, &route.required, Entry::Prompt(&route.prompt));
    list(cx, ListKind::Prompts, &catalogue.prompts, &catalogue.printed.prompts, sees, |page, next| {
        let mut result = ListPromptsResult::new(page.iter().map(|route| route.prompt.clone()).collect());
        result.next_cursor = next;
        RawObject::from_serialize(&result)
    })
}

/// `resources/list`.
pub(crate) fn resources(cx: &Cx) -> Outcome {
    let catalogue = &cx.state().catalogue;
    let sees =
        |route: &crate::server::ResourceRoute| sees(cx, &route.required, Entry::Resource(&route.resource));
    list(cx, ListKind::Resources, &catalogue.resources, &catalogue.printed.resources, sees, |page, next| {
        let mut result = ListResourcesResult::new(page.iter().map(|route| route.resource.clone()).collect());
        result.next_cursor = next;
        RawObject::from_serialize(&result)
    })
}

/// `resources/templates/list`.
pub(crate) fn templates(cx: &Cx) -> Outcome {
    let catalogue = &cx.state().catalogue;
    let sees =
        |route: &crate::server::TemplateRoute| sees(cx, &route.required, Entry::Template(&route.described));
    list(cx, ListKind::Templates, &catalogue.templates, &catalogue.printed.templates, sees, |page, next| {
        let described = page.iter().map(|route| route.described.clone()).collect();
        let mut result = ListResourceTemplatesResult::new(described);
        result.next_cursor = next;
        RawObject::from_serialize(&result)
    })
}

/// Whether the caller sees this entry. What it does not see does not exist for it.
pub(crate) fn sees(cx: &Cx, required: &Required, entry: Entry<'_>) -> bool {
    required.shows(cx.left()) && cx.state().filters.iter().all(|filter| filter(&cx.scope(), entry))
}

fn list<T>(
    cx: &Cx,
    kind: ListKind,
    shelf: &OrderedMap<T>,
    printed: &OnceLock<Arc<RawObject>>,
    sees: impl Fn(&T) -> bool,
    print: impl Fn(&[&Arc<T>], Option<String>) -> Result<RawObject, serde_json::Error>,
) -> Outcome {
    let state = cx.state();
    let letter = kind.letter();
    let place = match cursor(cx, letter) {
        Ok(place) => place,
        Err(error) => return Outcome::Failed(error),
    };
    let hint = hint(cx, kind);
    // One page, nobody filtered out: printed once for everybody.
    let common = !depends(state) && state.settings.page.is_none() && place == 0;
    if let Some(body) = printed.get().filter(|_| common) {
        return Outcome::Cacheable(Body::Shared(body.clone()), hint);
    }
    let size = state.settings.page.unwrap_or(usize::MAX).max(1);
    let mut page = Vec::new();
    let mut next = None;
    let mut last = place;
    for (place, item) in shelf.after(place).filter(|(_, item)| sees(item)) {
        if page.len() == size {
            next = Some(last);
            break;
        }
        page.push(item);
        last = place;
    }
    match print(&page, next.map(|place| printed_cursor(letter, place))) {
        Err(error) => Outcome::Failed(RpcError::internal(error.to_string())),
        Ok(body) if common => {
            Outcome::Cacheable(Body::Shared(printed.get_or_init(|| Arc::new(body)).clone()), hint)
        }
        Ok(body) => Outcome::Cacheable(body.into(), hint),
    }
}

/// How long a list may be kept. One that depends on who asks is nobody else's.
pub(crate) fn hint(cx: &Cx, kind: ListKind) -> CacheHint {
    let state = cx.state();
    let settings = &state.settings;
    let mut hint = settings.list_hints.get(&kind).unwrap_or(&settings.list_hint).clone();
    if depends(state) {
        hint.scope = CacheScope::Private;
    }
    hint
}

/// Whether what is listed depends on who asks.
fn depends(state: &State) -> bool {
    !state.filters.is_empty() || state.catalogue.requires.hides
}

/// Where a page stopped. It names the kind of list, so that no cursor is good for another one.
pub(crate) fn printed_cursor(kind: u8, place: u64) -> String {
    let mut bytes = vec![kind];
    bytes.extend_from_slice(&place.to_be_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The cursor as it came.
pub(crate) fn cursor_text(cx: &Cx) -> Result<Option<String>, RpcError> {
    let params: ListParams = cx
        .params()
        .decode()
        .map_err(|error| RpcError::invalid_params(format!("`{}`: {error}", cx.method())))?;
    Ok(params.cursor)
}

pub(crate) fn cursor(cx: &Cx, kind: u8) -> Result<u64, RpcError> {
    let Some(cursor) = cursor_text(cx)? else { return Ok(0) };
    let place = URL_SAFE_NO_PAD.decode(&cursor).ok().and_then(|bytes| match bytes.split_first() {
        Some((found, place)) if *found == kind => Some(u64::from_be_bytes(place.try_into().ok()?)),
        _ => None,
    });
    place.ok_or_else(|| {
        let shown: String = cursor.chars().take(40).collect();
        RpcError::invalid_params(format!("`{shown}` is not a cursor of this list: start again without one"))
    })
}
