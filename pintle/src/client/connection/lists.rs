use std::{
    collections::{HashSet, VecDeque},
    hash::{BuildHasher as _, RandomState},
    marker::PhantomData,
};

use pintle_proto::client::Change;
use pintle_types::{
    ErrorCode, RawObject,
    method::{ListPrompts, ListResourceTemplates, ListResources, ListTools, Method},
    schema::{
        ListParams, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
        Prompt, Resource, ResourceTemplate, Tool,
    },
};

use super::{
    Connection,
    call::{decode, params},
    options::{RequestOptions, ResultUse, request_options},
    request::RequestBuilder,
    slot::OutputSlot,
};
use crate::{Error, Result, ToolPredicate, client::sealed::Sealed};

/// A paginated list, item by item. The next page is fetched when it is needed.
///
/// ```no_run
/// # async fn example(server: pintle::Connection) -> pintle::Result<()> {
/// let mut tools = server.tools_stream();
/// while let Some(tool) = tools.next().await? {
///     println!("{}", tool.name);
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Items<L: List> {
    connection: Connection,
    /// Items that were fetched and not returned yet.
    ready: VecDeque<L::Item>,
    cursor: Cursor,
    /// Hashes of the cursors that were used, to detect cycles.
    used: HashSet<u64>,
    hasher: RandomState,
    /// The size of all pages so far.
    bytes: usize,
    options: RequestOptions,
    list: PhantomData<fn() -> L>,
}

#[derive(Debug)]
enum Cursor {
    First,
    Next(String),
    End,
}

/// One of the four lists of the protocol. Sealed.
pub trait List: Method<Params = ListParams> + Sealed + Send + Sync + 'static {
    /// The type of the items.
    type Item: Send + std::fmt::Debug;
    /// The change that concerns this list.
    #[doc(hidden)]
    const CHANGE: Change;
    /// Splits a page into its items and the cursor of the next page.
    #[doc(hidden)]
    fn open(page: Self::Result) -> (Vec<Self::Item>, Option<String>);
    /// Returns a page of tools as one of this list, if it is the list of tools.
    #[doc(hidden)]
    fn of_tools(_page: ListToolsResult) -> Option<Self::Result> {
        None
    }
}

impl Sealed for ListTools {}
impl Sealed for ListResources {}
impl Sealed for ListResourceTemplates {}
impl Sealed for ListPrompts {}

impl List for ListTools {
    const CHANGE: Change = Change::Tools;
    type Item = Tool;
    fn open(page: ListToolsResult) -> (Vec<Tool>, Option<String>) {
        (page.tools, page.next_cursor)
    }
    fn of_tools(page: ListToolsResult) -> Option<ListToolsResult> {
        Some(page)
    }
}

impl List for ListResources {
    const CHANGE: Change = Change::Resources;
    type Item = Resource;
    fn open(page: ListResourcesResult) -> (Vec<Resource>, Option<String>) {
        (page.resources, page.next_cursor)
    }
}

impl List for ListResourceTemplates {
    const CHANGE: Change = Change::Resources;
    type Item = ResourceTemplate;
    fn open(page: ListResourceTemplatesResult) -> (Vec<ResourceTemplate>, Option<String>) {
        (page.resource_templates, page.next_cursor)
    }
}

impl List for ListPrompts {
    const CHANGE: Change = Change::Prompts;
    type Item = Prompt;
    fn open(page: ListPromptsResult) -> (Vec<Prompt>, Option<String>) {
        (page.prompts, page.next_cursor)
    }
}

impl<L: List> Items<L> {
    pub(in crate::client) fn new(connection: Connection, options: RequestOptions) -> Self {
        Self {
            connection,
            ready: VecDeque::new(),
            cursor: Cursor::First,
            used: HashSet::new(),
            hasher: RandomState::new(),
            bytes: 0,
            options,
            list: PhantomData,
        }
    }

    request_options!();

    /// Starts again with the first page.
    fn restart(&mut self) {
        self.ready.clear();
        self.cursor = Cursor::First;
        self.used.clear();
        self.bytes = 0;
    }

    /// Returns the next item; `None` at the end.
    ///
    /// # Errors
    ///
    /// The next page could not be fetched. Another call tries again.
    pub async fn next(&mut self) -> Result<Option<L::Item>> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Ok(Some(item));
            }
            match self.next_page().await? {
                Some(page) => self.ready.extend(page),
                None => return Ok(None),
            }
        }
    }

    /// Returns the items of the next page; `None` at the end.
    ///
    /// # Errors
    ///
    /// The page could not be fetched. Another call tries again.
    pub async fn next_page(&mut self) -> Result<Option<Vec<L::Item>>> {
        let params = match &self.cursor {
            Cursor::First => RawObject::empty(),
            Cursor::Next(cursor) => page_params(Some(cursor.clone()))?,
            Cursor::End => return Ok(None),
        };
        let (page, bytes) = self.connection.page::<L>(params, self.options.clone()).await?;
        self.bytes = self.bytes.saturating_add(bytes);
        let (items, next) = L::open(page);
        let limit = self.connection.shared().settings.limits.list_pages;
        self.cursor = match next {
            None => Cursor::End,
            Some(next) if self.used.len() >= limit || !self.used.insert(self.hasher.hash_one(&next)) => {
                self.cursor = Cursor::End;
                return Err(Error::Decode(format!(
                    "`{}` never ends: its pages go in circles, or are more than {limit}: raise `Limits::list_pages` if they \
                     have to be",
                    L::NAME
                )));
            }
            Some(next) => Cursor::Next(next),
        };
        Ok(Some(items))
    }

    pub(in crate::client) async fn all(mut self) -> Result<Vec<L::Item>> {
        let mut all = Vec::new();
        let mut restarted = false;
        let limit = self.connection.shared().settings.limits.list_bytes;
        loop {
            match self.next_page().await {
                Ok(Some(_)) if self.bytes > limit => {
                    return Err(Error::Refused(format!(
                        "`{}` has more than {limit} bytes in all: take it page by page, or raise `Limits::list_bytes`",
                        L::NAME
                    )));
                }
                Ok(Some(page)) => all.extend(page),
                Ok(None) => return Ok(all),
                // The list has changed under our hands: what we have of it is old.
                Err(Error::Rpc(error))
                    if error.code == ErrorCode::INVALID_PARAMS && !self.used.is_empty() && !restarted =>
                {
                    restarted = true;
                    self.connection.shared().with_cache(|cache, _| cache.forget_all(L::NAME));
                    self.restart();
                    all.clear();
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl Connection {
    /// Returns all tools, of all pages.
    ///
    /// # Errors
    ///
    /// The server has no tools, did not answer, or its pages never end.
    pub fn tools(&self) -> RequestBuilder<'_, Vec<Tool>> {
        RequestBuilder::all::<ListTools>(self)
    }

    /// Returns the tools that match a [`ToolQuery`](crate::ToolQuery) or a function.
    ///
    /// Hints are the server's word: good for finding a tool, not for trusting it.
    ///
    /// ```no_run
    /// # async fn example(server: pintle::Connection) -> pintle::Result<()> {
    /// use pintle::ToolQuery;
    ///
    /// let harmless = server.tools_where(ToolQuery::new().read_only()).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`tools`](Self::tools).
    pub async fn tools_where(&self, query: impl ToolPredicate) -> Result<Vec<Tool>> {
        let mut tools = self.tools().await?;
        tools.retain(|tool| query.matches(tool));
        Ok(tools)
    }

    /// Returns the tools one by one; pages are fetched as needed.
    pub fn tools_stream(&self) -> Items<ListTools> {
        Items::new(self.clone(), RequestOptions::of(self))
    }

    /// Returns one page of tools: the first, or the one of a cursor.
    ///
    /// # Errors
    ///
    /// The cursor is not valid, or the server did not answer.
    pub fn tools_page(&self, cursor: Option<String>) -> RequestBuilder<'_, ListToolsResult> {
        RequestBuilder::page::<ListTools>(self, page_params(cursor))
    }

    /// Returns all resources, of all pages.
    ///
    /// # Errors
    ///
    /// As [`tools`](Self::tools).
    pub fn resources(&self) -> RequestBuilder<'_, Vec<Resource>> {
        RequestBuilder::all::<ListResources>(self)
    }

    /// Returns the resources one by one; pages are fetched as needed.
    pub fn resources_stream(&self) -> Items<ListResources> {
        Items::new(self.clone(), RequestOptions::of(self))
    }

    /// Returns one page of resources.
    ///
    /// # Errors
    ///
    /// As [`tools_page`](Self::tools_page).
    pub fn resources_page(&self, cursor: Option<String>) -> RequestBuilder<'_, ListResourcesResult> {
        RequestBuilder::page::<ListResources>(self, page_params(cursor))
    }

    /// Returns all resource templates, of all pages.
    ///
    /// # Errors
    ///
    /// As [`tools`](Self::tools).
    pub fn resource_templates(&self) -> RequestBuilder<'_, Vec<ResourceTemplate>> {
        RequestBuilder::all::<ListResourceTemplates>(self)
    }

    /// Returns the resource templates one by one; pages are fetched as needed.
    pub fn resource_templates_stream(&self) -> Items<ListResourceTemplates> {
        Items::new(self.clone(), RequestOptions::of(self))
    }

    /// Returns one page of resource templates.
    ///
    /// # Errors
    ///
    /// As [`tools_page`](Self::tools_page).
    pub fn resource_templates_page(
        &self,
        cursor: Option<String>,
    ) -> RequestBuilder<'_, ListResourceTemplatesResult> {
        RequestBuilder::page::<ListResourceTemplates>(self, page_params(cursor))
    }

    /// Returns all prompts, of all pages.
    ///
    /// # Errors
    ///
    /// As [`tools`](Self::tools).
    pub fn prompts(&self) -> RequestBuilder<'_, Vec<Prompt>> {
        RequestBuilder::all::<ListPrompts>(self)
    }

    /// Returns the prompts one by one; pages are fetched as needed.
    pub fn prompts_stream(&self) -> Items<ListPrompts> {
        Items::new(self.clone(), RequestOptions::of(self))
    }

    /// Returns one page of prompts.
    ///
    /// # Errors
    ///
    /// As [`tools_page`](Self::tools_page).
    pub fn prompts_page(&self, cursor: Option<String>) -> RequestBuilder<'_, ListPromptsResult> {
        RequestBuilder::page::<ListPrompts>(self, page_params(cursor))
    }

    /// Returns a page and its size in bytes.
    pub(in crate::client) async fn page<L: List>(
        &self,
        params: RawObject,
        mut options: RequestOptions,
    ) -> Result<(L::Result, usize)> {
        let decoded: OutputSlot<(Box<str>, ListToolsResult)> = OutputSlot::default();
        if L::NAME == ListTools::NAME {
            options.result_use = ResultUse::ToolsPage(decoded.clone());
        }
        let result = self.send(L::NAME.into(), params, options).await?;
        // Unless the layers have changed it, it is decoded already.
        let decoded = decoded.take().filter(|(text, _)| **text == *result.as_str());
        let page = match decoded.and_then(|(_, page)| L::of_tools(page)) {
            Some(page) => page,
            None => decode(L::NAME, &result)?,
        };
        Ok((page, result.as_str().len()))
    }
}

/// The params of the first page, or of the page of a cursor.
fn page_params(cursor: Option<String>) -> Result<RawObject> {
    let Some(cursor) = cursor else { return Ok(RawObject::empty()) };
    let mut asked = ListParams::new();
    asked.cursor = Some(cursor);
    params(&asked)
}
