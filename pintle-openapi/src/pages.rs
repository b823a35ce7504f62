//! The next page of an answer, by the ways in which APIs say where it is.

use http::{HeaderMap, Uri, header::LINK};
use percent_encoding::percent_decode_str;
use pintle::types::JsonObject;
use serde_json::Value;

use crate::{
    client,
    operation::{Parameter, Place},
    tool::ApiTool,
};

/// The members of answers with a cursor, and the parameters that take it.
const CURSORS: &[(&[&str], &[&str])] = &[
    (&["next_cursor", "nextCursor"], &["cursor", "next_cursor", "nextCursor"]),
    (&["nextPageToken", "next_page_token"], &["pageToken", "page_token"]),
    (&["nextToken", "next_token", "NextToken"], &["nextToken", "next_token", "NextToken"]),
    (&["continuationToken", "continuation_token"], &["continuationToken", "continuation_token"]),
    (&["endCursor", "end_cursor"], &["after", "cursor"]),
    (&["cursor"], &["cursor"]),
];
/// The members of answers with the URL of the next page.
const LINKS: &[&str] =
    &["/next", "/links/next", "/_links/next/href", "/paging/next", "/next_page_url", "/@odata.nextLink"];
/// The members of answers that others of these are in.
const HOLDERS: &[&str] =
    &["/meta", "/metadata", "/page_info", "/pageInfo", "/pagination", "/paging", "/response_metadata"];
/// The members of answers that are `false` for the last page.
const MORE: &[&str] = &["has_more", "hasMore", "has_next", "hasNext", "hasNextPage", "has_next_page"];
/// The members of answers with the number of items of all pages, and with the number of pages.
const TOTALS: &[&str] = &["total", "total_count", "totalCount"];
const LAST_PAGES: &[&str] = &["total_pages", "totalPages", "last_page", "page_count", "pageCount"];
/// The parameters with the number of a page, with the items before a page, and with the size of pages.
const PAGES: &[&str] = &["page", "page_number", "pageNumber", "page[number]"];
const OFFSETS: &[&str] = &["offset", "skip", "startAt", "$skip"];
const SIZES: &[&str] = &[
    "limit",
    "per_page",
    "perPage",
    "page_size",
    "pageSize",
    "page[size]",
    "maxResults",
    "max_results",
    "size",
    "count",
    "$top",
    "first",
];
/// The bytes that a cursor or a link may have.
const MAX_CURSOR: usize = 4 << 10;

/// Where the next page is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NextPage {
    /// The arguments that get it, beside those of the call.
    Arguments(Vec<(String, Value)>),
    /// The arguments that may get it: nothing says that this is the last page.
    Perhaps(Vec<(String, Value)>),
    /// The URL at the origin of the API, which no arguments lead to.
    Link(Uri),
}

/// A page of an answer, and how it was requested.
pub(crate) struct Page<'a> {
    pub(crate) tool: &'a ApiTool,
    pub(crate) arguments: &'a JsonObject,
    pub(crate) uri: &'a Uri,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) value: &'a Value,
}

impl NextPage {
    /// Tells how to get it.
    pub(crate) fn describe(&self) -> String {
        let shown = |arguments: &[(String, Value)]| {
            let arguments: Vec<_> =
                arguments.iter().map(|(name, value)| format!("`{name}` = {value}")).collect();
            arguments.join(", ")
        };
        match self {
            Self::Arguments(arguments) => format!("the next page is that of {}", shown(arguments)),
            Self::Perhaps(arguments) => {
                format!("the next page, if there is one, is that of {}", shown(arguments))
            }
            Self::Link(_) => {
                "there are more pages, which no arguments lead to: the program can read them with `pages`"
                    .to_owned()
            }
        }
    }
}

/// Returns the argument that sets how many items a page has.
pub(crate) fn size_argument(parameters: &[Parameter]) -> Option<String> {
    parameter(parameters, SIZES).map(|parameter| parameter.argument.clone())
}

/// Returns a pointer to the list of an answer: the longest that is not in another one.
pub(crate) fn list(value: &Value) -> Option<String> {
    if value.is_array() {
        return Some(String::new());
    }
    let escaped = |name: &str| name.replace('~', "~0").replace('/', "~1");
    let mut lists = Vec::new();
    for (name, member) in value.as_object().into_iter().flatten() {
        match member {
            Value::Array(items) => lists.push((items.len(), format!("/{}", escaped(name)))),
            Value::Object(members) => lists.extend(members.iter().filter_map(|(inner, member)| {
                Some((member.as_array()?.len(), format!("/{}/{}", escaped(name), escaped(inner))))
            })),
            _ => {}
        }
    }
    // The first of those with most items.
    lists.into_iter().rev().max_by_key(|(length, _)| *length).map(|(_, pointer)| pointer)
}

fn parameter<'a>(parameters: &'a [Parameter], names: &[&str]) -> Option<&'a Parameter> {
    let is_it =
        |parameter: &&Parameter, name: &str| parameter.place == Place::Query && parameter.name == name;
    names.iter().find_map(|name| parameters.iter().find(|parameter| is_it(parameter, name)))
}

impl Page<'_> {
    /// Returns where the next page is, if there may be one.
    pub(crate) fn next(&self) -> Option<NextPage> {
        let headers: Vec<_> =
            self.headers.get_all(LINK).iter().filter_map(|value| value.to_str().ok()).collect();
        let linked = |name: &str| headers.iter().find_map(|header| linked(header, name));
        if let Some(link) = linked("next") {
            return self.at(link);
        }
        // Who links to other pages would link to the next one.
        if linked("prev").or_else(|| linked("first")).is_some() {
            return None;
        }
        match LINKS.iter().find_map(|pointer| self.value.pointer(pointer)) {
            Some(Value::String(link)) if link.starts_with(['/', '?']) || link.contains("://") => {
                return self.at(link);
            }
            Some(Value::Null) => return None,
            _ => {}
        }
        for (members, parameters) in CURSORS {
            let Some(parameter) = parameter(&self.tool.plan.parameters, parameters) else { continue };
            let Some(cursor) = self.member(members) else { continue };
            let is_end = matches!(cursor, Value::Null | Value::Bool(false)) || cursor == "";
            let is_cursor =
                cursor.is_number() || cursor.as_str().is_some_and(|text| text.len() <= MAX_CURSOR);
            let is_same = self.arguments.get(&parameter.argument) == Some(cursor);
            return (!is_end && is_cursor && !is_same)
                .then(|| NextPage::Arguments(vec![(parameter.argument.clone(), cursor.clone())]));
        }
        self.counted()
    }

    /// Returns the next page of those that have numbers, or begin at numbers.
    fn counted(&self) -> Option<NextPage> {
        let more = self.member(MORE).and_then(Value::as_bool);
        let count = self.value.pointer(&list(self.value)?)?.as_array()?.len() as u64;
        let size = parameter(&self.tool.plan.parameters, SIZES).and_then(|parameter| self.number(parameter));
        if more == Some(false) || count == 0 || more.is_none() && size.is_some_and(|size| count < size) {
            return None;
        }
        let total = |names| self.member(names).and_then(Value::as_u64);
        let (parameter, next, is_last) = if let Some(offset) = parameter(&self.tool.plan.parameters, OFFSETS)
        {
            let next = self.number(offset).unwrap_or(0).checked_add(count)?;
            (offset, next, total(TOTALS).map(|total| next >= total))
        } else {
            let page = parameter(&self.tool.plan.parameters, PAGES)?;
            let current = self.number(page).unwrap_or(1);
            let before = size.and_then(|size| current.checked_mul(size)).zip(total(TOTALS));
            let is_last = total(LAST_PAGES).map(|last| current >= last);
            (page, current.checked_add(1)?, is_last.or(before.map(|(before, total)| before >= total)))
        };
        let next = vec![(parameter.argument.clone(), next.into())];
        match (more, is_last) {
            (Some(true), _) | (_, Some(false)) => Some(NextPage::Arguments(next)),
            (_, Some(true)) => None,
            _ => Some(NextPage::Perhaps(next)),
        }
    }

    /// Returns what a link leads to: arguments, if what differs from the request are parameters.
    fn at(&self, link: &str) -> Option<NextPage> {
        let base = &self.tool.plan.base;
        let link = match link.strip_prefix('?') {
            Some(query) => format!("{}?{query}", self.uri.path()),
            None => link.to_owned(),
        };
        let to = client::same_origin(base, &link).filter(|_| link.len() <= MAX_CURSOR)?;
        let sent: Vec<&str> = self.uri.query().unwrap_or_default().split('&').collect();
        let differing =
            to.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty() && !sent.contains(pair));
        let arguments: Option<Vec<_>> = differing.map(|pair| self.argument(pair)).collect();
        match arguments.filter(|_| to.path() == self.uri.path()) {
            Some(arguments) if arguments.is_empty() => None,
            Some(arguments) => Some(NextPage::Arguments(arguments)),
            None => Some(NextPage::Link(to)),
        }
    }

    /// Returns the argument that a pair of a query is made of.
    fn argument(&self, pair: &str) -> Option<(String, Value)> {
        let decoded = |text: &str| {
            let text = text.replace('+', " ");
            percent_decode_str(&text).decode_utf8().ok().map(|text| text.into_owned())
        };
        let (name, value) = pair.split_once('=')?;
        let (name, text) = (decoded(name)?, decoded(value)?);
        let parameter = parameter(&self.tool.plan.parameters, &[&name])?;
        let value = self.tool.value(&parameter.argument, &text)?;
        Some((parameter.argument.clone(), value))
    }

    /// Returns the number that a parameter is sent with.
    fn number(&self, parameter: &Parameter) -> Option<u64> {
        let properties = self.tool.tool.input_schema.get("properties");
        let default = || properties?.get(&parameter.argument)?.get("default");
        self.arguments.get(&parameter.argument).or_else(default)?.as_u64()
    }

    /// Returns a member of the answer, or of what such members are in.
    fn member(&self, names: &[&str]) -> Option<&Value> {
        let holders = HOLDERS.iter().filter_map(|pointer| self.value.pointer(pointer));
        let mut holders = [self.value].into_iter().chain(holders);
        holders.find_map(|holder| names.iter().find_map(|name| holder.get(name)))
    }
}

/// Returns the target of a relation in a header `Link`.
fn linked<'a>(header: &'a str, wanted: &str) -> Option<&'a str> {
    let mut rest = header;
    while let Some((_, behind)) = rest.split_once('<') {
        let (target, after) = behind.split_once('>')?;
        let parameters = after.split('<').next().unwrap_or_default().to_ascii_lowercase();
        let mut relations = parameters.split([';', ',']).filter_map(|part| part.trim().strip_prefix("rel="));
        if relations.any(|names| names.trim_matches('"').split_ascii_whitespace().any(|name| name == wanted))
        {
            return Some(target);
        }
        rest = after;
    }
    None
}
