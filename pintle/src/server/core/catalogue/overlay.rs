//! Tools of one session or one principal, besides those of everybody.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use pintle_proto::server::Change;

use super::{
    Catalogue, ToolRoute,
    edit::{taken, without_fault},
    options::CatalogueRoute,
};
use crate::{
    Error, Result,
    server::{
        Cx, Scope, Server, SessionError, SessionHandle, core::sessions::LiveSession, ordered_map::OrderedMap,
    },
};

/// The tools of one session or one principal.
pub(crate) type Tools = OrderedMap<ToolRoute>;

/// The tools of principals, by their names.
pub(crate) type PrincipalTools = Arc<HashMap<Box<str>, Arc<Tools>>>;

/// The limits of principals with tools, and of tools of one session or principal.
const MAX_PRINCIPALS: usize = 65_536;
const MAX_TOOLS: usize = 256;

/// The tools of a session, one of its values.
#[derive(Debug, Default)]
struct SessionTools(Mutex<Arc<Tools>>);

impl SessionTools {
    fn lock(&self) -> MutexGuard<'_, Arc<Tools>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The tools of one session.
impl SessionHandle {
    /// Adds a tool that only this session sees, and notifies its client. It goes before a tool of the server or of the principal
    /// with the same name, but over HTTP the rights that this one requires are required too.
    ///
    /// If all tools of a server are added so, declare them with [`may_change`](Server::may_change). Filters apply as usual.
    ///
    /// The tool is in this process: another one that continues the session from a session store does not have it.
    ///
    /// # Errors
    ///
    /// The session has ended, the route is invalid, the session has a tool of this name, or 256 tools.
    ///
    /// ```
    /// use pintle::server::{Cx, ToolError, tool};
    ///
    /// async fn log_in(cx: Cx) -> Result<&'static str, ToolError> {
    ///     // Without a session, the tools of a client depend on its principal alone: see `Server::add_tool_for`.
    ///     let session = cx.session().ok_or("log in with the transport's authorization")?;
    ///     session.add_tool(tool("log_out", || async { "Goodbye." }))?;
    ///     Ok("Welcome.")
    /// }
    /// # let _ = tool("log_in", log_in);
    /// ```
    pub fn add_tool(&self, mut route: ToolRoute) -> Result<(), SessionError> {
        route.prepare();
        let invalid = |error: Error| SessionError::InvalidTool { reason: error.to_string() };
        without_fault(&route).map_err(invalid)?;
        let tools = self.get_or_insert_with(SessionTools::default)?;
        let mut tools = tools.lock();
        if tools.len() >= MAX_TOOLS {
            return Err(invalid(too_many("session")));
        }
        let name = route.key().to_owned();
        Arc::make_mut(&mut tools).add(name, route).map_err(|route| invalid(taken(&route)))?;
        drop(tools);
        self.publish(&Change::Tools);
        Ok(())
    }

    /// Removes a tool of this session. Returns `false` if the session has none of this name. Running calls finish.
    pub fn remove_tool(&self, name: &str) -> bool {
        let removed =
            self.get::<SessionTools>().is_some_and(|tools| Arc::make_mut(&mut tools.lock()).remove(name));
        if removed {
            self.publish(&Change::Tools);
        }
        removed
    }
}

/// The tools of one principal.
impl Server {
    /// Adds a tool that only this principal sees, in every era, and notifies clients. It goes before a tool of the server with the
    /// same name. All lists of tools are private from then on, for caches.
    ///
    /// A client without a session has to see the same tools whatever it called before, so this is for programs that know who may do
    /// what, and not for handlers: a handler adds tools to its [session](SessionHandle::add_tool).
    ///
    /// # Errors
    ///
    /// The route is invalid, the principal has a tool of this name or 256 tools, or 65,536 principals have tools.
    ///
    /// ```
    /// use pintle::server::{Server, tool};
    ///
    /// let server = Server::new("office", "1.0.0").tool(tool("print", || async { "printed" }));
    /// server.add_tool_for("ann", tool("sign", || async { "signed" }))?;
    /// assert!(server.remove_tool_for("ann", "sign"));
    /// # Ok::<(), pintle::Error>(())
    /// ```
    pub fn add_tool_for(&self, principal: &str, mut route: ToolRoute) -> Result<()> {
        route.prepare();
        without_fault(&route)?;
        self.change_catalogue(|catalogue| {
            let known = catalogue.principal_tools.get(principal);
            if known.is_none() && catalogue.principal_tools.len() >= MAX_PRINCIPALS {
                return Err(Error::misuse(format!(
                    "{MAX_PRINCIPALS} principals have tools; remove those of others, or use a filter"
                )));
            }
            if known.is_some_and(|tools| tools.len() >= MAX_TOOLS) {
                return Err(too_many("principal"));
            }
            if known.is_some_and(|tools| tools.get(route.key()).is_some()) {
                return Err(taken(&route));
            }
            catalogue.requires.add(&route.options.required);
            let tools = Arc::make_mut(&mut catalogue.principal_tools).entry(principal.into()).or_default();
            let name = route.key().to_owned();
            // The name is known to be free.
            let _ = Arc::make_mut(tools).add(name, route);
            Ok(())
        })?;
        self.tools_changed();
        Ok(())
    }

    /// Removes a tool of this principal. Returns `false` if the principal has none of this name. Running calls finish.
    pub fn remove_tool_for(&self, principal: &str, name: &str) -> bool {
        let removed = self.change_catalogue(|catalogue| {
            if catalogue.principal_tools.get(principal).is_none_or(|tools| tools.get(name).is_none()) {
                return false;
            }
            let all = Arc::make_mut(&mut catalogue.principal_tools);
            let Some(tools) = all.get_mut(principal) else { return false };
            let removed = Arc::make_mut(tools).remove(name);
            if tools.is_empty() {
                all.remove(principal);
            }
            removed
        });
        if removed {
            self.tools_changed();
        }
        removed
    }
}

fn too_many(owner: &str) -> Error {
    Error::misuse(format!("the {owner} has {MAX_TOOLS} tools; remove one first"))
}

/// The tools that a caller has besides those of everybody.
pub(crate) struct Overlay {
    session: Option<Arc<Tools>>,
    principal: Option<Arc<Tools>>,
}

/// The session and the principal of a caller, whose tools come before those of everybody.
#[derive(Clone, Copy)]
pub(crate) struct OverlayKey<'a> {
    /// The session, if its server is the one that is asked.
    session: Option<&'a Weak<dyn LiveSession>>,
    principal: Option<&'a str>,
}

impl<'a> OverlayKey<'a> {
    /// Creates the key of a caller whose session is not looked at.
    #[cfg(feature = "http-server")]
    pub(crate) fn of_principal(principal: Option<&'a str>) -> Self {
        Self { session: None, principal }
    }

    fn session_tools(self) -> Option<Arc<Tools>> {
        let tools = self.session?.upgrade()?.facts().values.get::<SessionTools>()?;
        Some(tools.lock().clone()).filter(|tools| !tools.is_empty())
    }

    fn principal_tools(self, catalogue: &Catalogue) -> Option<&Arc<Tools>> {
        catalogue.principal_tools.get(self.principal?)
    }

    /// Returns the tool of this name, of the session or of the principal.
    pub(crate) fn tool(self, catalogue: &Catalogue, name: &str) -> Option<Arc<ToolRoute>> {
        let of_session = self.session_tools().and_then(|tools| tools.get(name).cloned());
        of_session.or_else(|| self.principal_tools(catalogue)?.get(name).cloned())
    }
}

impl Scope<'_> {
    pub(crate) fn overlay_key(&self) -> OverlayKey<'_> {
        OverlayKey { session: self.session.filter(|_| !self.is_mounted), principal: self.principal }
    }
}

impl Cx {
    pub(crate) fn overlay_key(&self) -> OverlayKey<'_> {
        OverlayKey {
            session: self.live_session().filter(|_| !self.is_mounted()),
            principal: self.principal(),
        }
    }
}

impl Overlay {
    /// Returns the overlay of a caller.
    pub(crate) fn of(cx: &Cx) -> Self {
        let key = cx.overlay_key();
        let principal = key.principal_tools(&cx.snapshot().catalogue).cloned();
        Self { session: key.session_tools(), principal }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.session.is_none() && self.principal.is_none()
    }

    /// Returns the tools of the session, and those of the principal.
    pub(crate) fn tools(&self) -> [Option<&Tools>; 2] {
        [self.session.as_deref(), self.principal.as_deref()]
    }
}
