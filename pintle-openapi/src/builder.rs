//! Operations to tools.

use std::{collections::HashMap, sync::OnceLock};

use http::Method;
use pintle::{
    server::ProvidedEntry,
    types::schema::{Tool, ToolAnnotations},
};
use pintle_oauth::client::BearerTokens;

use crate::{
    LeftOut, OpenApiError,
    answer::AnswerPlan,
    arguments::Arguments,
    client::ApiClient,
    document::{Document, Version},
    names,
    operation::{self, BodySource, Carrier, Operation, Operations, PathTemplate, Place},
    output, pages,
    request::{AppliedSecret, RequestPlan},
    resources::{self, ApiResources},
    settings::Settings,
    tool::ApiTool,
    tools::{ApiTools, BuiltTools},
    visible::visible,
};

/// The limit of a description, in characters.
const MAX_DESCRIPTION: usize = 4_000;
/// The limit of a title, in characters.
const MAX_TITLE: usize = 120;
/// The number of tools from which models choose badly.
const MANY: usize = 40;

/// Makes the tools of a document.
pub(crate) fn build(document: &Document, settings: &Settings) -> Result<ApiTools, OpenApiError> {
    if let Some(fault) = &settings.fault {
        return Err(OpenApiError::setting(fault.clone()));
    }
    let Operations { operations, left_out, mut warnings } = Operations::of(document);
    settings.rules.check(&operations)?;
    let builder = Builder { document, settings, secrets: secrets(document, settings)? };
    let mut left_out: Vec<_> =
        left_out.into_iter().map(|(operation, reason)| LeftOut { operation, reason }).collect();
    let mut tools = Vec::new();
    for operation in operations.iter().filter(|operation| settings.rules.admit(operation)) {
        let mut found = Vec::new();
        match builder.tool(operation, &mut found) {
            Ok(tool) => tools.push((operation, tool)),
            Err(reason) => left_out.push(LeftOut { operation: operation.key(), reason }),
        }
        warnings.extend(found.into_iter().map(|warning| format!("`{}`: {warning}", operation.key())));
    }
    let wanted = tools.iter().map(|(operation, tool)| (builder.wanted(operation), tool.key.clone()));
    let names = names::tools(&wanted.collect::<Vec<_>>());
    let (mut named, mut read) = (Vec::with_capacity(tools.len()), Vec::new());
    for ((operation, mut tool), name) in tools.into_iter().zip(names) {
        tool.tool.name = name;
        let list = if settings.rules.reads(operation) { &mut read } else { &mut named };
        list.push(tool);
    }
    let info = document.root().get("info");
    let title = info.and_then(|info| info.text("title")).filter(|title| !title.trim().is_empty());
    let name = settings.name.clone().unwrap_or_else(|| title.unwrap_or("api").trim().to_owned());
    let (resources, others) = ApiResources::new(&resources::scheme(&name), read);
    for (tool, reason) in others {
        // What only others of a pattern are is nothing to tell.
        if tool.plan.method == Method::GET {
            warnings.push(format!("`{}` is a tool and no resource: {reason}", tool.key));
        }
        named.push(tool);
    }
    if named.len() > MANY {
        let count = named.len();
        warnings.push(format!(
            "there are {count} tools, of which models choose badly; choose with `include`, or mount it in a `ToolSearch`"
        ));
    }
    let Settings { timeout, max_answer, .. } = *settings;
    let mut client = ApiClient::new(settings.headers.clone(), timeout, max_answer, settings.proxy.clone());
    client.pages = settings.pages;
    let entry = |(number, tool): (usize, &ApiTool)| {
        (tool.tool.name.clone(), (number, ProvidedEntry::from(tool.tool.clone())))
    };
    Ok(ApiTools::new(BuiltTools {
        name,
        entries: named.iter().enumerate().map(entry).collect(),
        tools: named,
        resources,
        left_out,
        warnings,
        client,
        printed: OnceLock::new(),
    }))
}

/// A credential that the program has, as its scheme sends it.
struct KnownSecret {
    carrier: Carrier,
    secret: Option<AppliedSecret>,
    tokens: Option<BearerTokens>,
}

fn secrets(document: &Document, settings: &Settings) -> Result<HashMap<String, KnownSecret>, OpenApiError> {
    let schemes = operation::schemes(document);
    let fault = |name: &str, reason: &str| OpenApiError::setting(format!("the secret of `{name}`: {reason}"));
    let find = |name: &str| {
        let scheme = schemes.get(name).ok_or_else(|| {
            let mut known: Vec<_> = schemes.keys().take(32).map(|name| format!("`{name}`")).collect();
            known.sort();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            fault(name, &format!("there is no such security scheme; there are: {known}"))
        })?;
        let unsupported =
            "its security scheme is not supported; send it with `header` if the API takes it there";
        let carrier = scheme.carrier.clone().ok_or_else(|| fault(name, unsupported))?;
        Ok::<_, OpenApiError>((scheme, carrier))
    };
    let mut secrets = HashMap::new();
    for (name, secret) in &settings.secrets {
        let (_, carrier) = find(name)?;
        let secret = AppliedSecret::new(&carrier, secret).map_err(|reason| fault(name, reason))?;
        secrets.insert(name.clone(), KnownSecret { carrier, secret: Some(secret), tokens: None });
    }
    for (name, client) in &settings.oauth_clients {
        let (scheme, carrier) = find(name)?;
        let tokens = client.tokens(scheme, &settings.servers, settings.proxy.clone());
        let tokens = tokens.map_err(|reason| fault(name, &reason))?;
        secrets.insert(name.clone(), KnownSecret { carrier, secret: None, tokens: Some(tokens) });
    }
    Ok(secrets)
}

struct Builder<'a> {
    document: &'a Document,
    settings: &'a Settings,
    secrets: HashMap<String, KnownSecret>,
}

impl Builder<'_> {
    /// Makes the tool of an operation, without its name.
    fn tool(&self, operation: &Operation<'_>, warnings: &mut Vec<String>) -> Result<ApiTool, String> {
        let version = self.document.version;
        if version == Version::V32 {
            let words = operation.new_words();
            warnings.extend(words.iter().map(|word| format!("`{word}` of a media type is ignored")));
        }
        let method = Method::from_bytes(operation.method.to_ascii_uppercase().as_bytes());
        let method = method.map_err(|_| "its method is none")?;
        let path = PathTemplate::parse(operation.path)?;
        let mut sources = operation::sources(operation, warnings)?;
        for name in path.names() {
            if !sources.iter().any(|source| source.place == Place::Path && source.name == name) {
                return Err(format!("its path has `{{{name}}}`, and no parameter is it; declare it"));
            }
        }
        sources.retain(|source| {
            let is_sent = source.place != Place::Path || path.names().any(|name| name == source.name);
            if !is_sent {
                warnings.push(format!("the parameter `{}` is not in the path, and is left out", source.name));
            }
            is_sent
        });
        let (secrets, hint) = self.secrets(operation);
        sources.retain(|source| {
            !secrets.iter().any(|secret| carries(&secret.carrier, source.place, source.name))
        });
        let body = BodySource::of(operation)?;
        let Arguments { schema, parameters, body } = Arguments::new(&sources, body, version, warnings);
        let fields = self.settings.rules.fields(operation)?;
        let output = match self.settings.has_output_schemas {
            true => output::plan(operation, version, fields.as_ref(), warnings),
            false => None,
        };
        let mut tool = Tool::new("", schema);
        tool.title = operation.own("title").or_else(|| operation.node.get("summary")).and_then(|title| {
            let title = title.value.as_str()?.trim();
            (!title.is_empty()).then(|| visible(title).chars().take(MAX_TITLE).collect())
        });
        tool.description = Some(self.description(operation));
        tool.annotations = Some(hints(operation));
        tool.output_schema = output.as_ref().map(|output| output.shown.clone());
        let servers = &self.settings.servers;
        let base = servers.base(operation, self.document)?;
        let plan = RequestPlan {
            method,
            is_at_base: servers.origin().is_some_and(|origin| origin == base.origin),
            base,
            path,
            parameters,
            body,
            secrets: secrets.iter().filter_map(|secret| secret.secret.clone()).collect(),
            tokens: secrets.iter().find_map(|secret| secret.tokens.clone()),
            accept: output::accept(operation),
        };
        let (max_result, page_size) = (self.settings.max_result, pages::size_argument(&plan.parameters));
        let answer = AnswerPlan { output, fields, max_result, page_size };
        Ok(ApiTool { tool, key: operation.key(), plan, answer, hint, compiled: OnceLock::new() })
    }

    /// Returns the credentials of an operation: those of the first alternative that the program has all of. Also returns what to do if they do
    /// not suffice.
    fn secrets(&self, operation: &Operation<'_>) -> (Vec<&KnownSecret>, Option<String>) {
        let wanted = operation::wanted(operation, self.document);
        for schemes in wanted.iter().filter(|schemes| !schemes.is_empty()) {
            let known: Vec<_> = schemes.iter().filter_map(|name| self.secrets.get(*name)).collect();
            if known.len() == schemes.len() {
                let hint = format!(
                    "the program has a credential for `{}`; it has to be valid",
                    schemes.join("` and `")
                );
                return (known, Some(hint));
            }
        }
        let schemes: Vec<_> = wanted.iter().filter(|schemes| !schemes.is_empty()).take(8).collect();
        let hint = schemes.iter().map(|schemes| format!("`{}`", schemes.join("` and `"))).collect::<Vec<_>>();
        let hint = format!(
            "the program has no credential for {}; it has to give one with `secret`",
            hint.join(" or ")
        );
        (Vec::new(), (!schemes.is_empty()).then_some(hint))
    }

    /// Returns the name that a tool should have.
    fn wanted(&self, operation: &Operation<'_>) -> String {
        let given = self.settings.rules.name(operation).or_else(|| operation.id()).map(str::to_owned);
        let name = given.unwrap_or_else(|| names::of_path(operation.method, operation.path));
        format!("{}{name}", self.settings.prefix)
    }

    fn description(&self, operation: &Operation<'_>) -> String {
        let text = match self.settings.rules.description(operation) {
            Some(text) => text.to_owned(),
            None => {
                let parts = ["summary", "description"]
                    .map(|name| operation.node.text(name).unwrap_or_default().trim());
                match parts {
                    ["", ""] => operation.key(),
                    [one, ""] | ["", one] => one.to_owned(),
                    // Often one is repeated in the other.
                    [summary, long] if long.starts_with(summary.trim_end_matches('.')) => long.to_owned(),
                    [summary, long] => format!("{summary}\n\n{long}"),
                }
            }
        };
        let is_deprecated = operation.node.flag("deprecated") == Some(true);
        let text = if is_deprecated { format!("Deprecated. {text}") } else { text };
        let text = visible(&text);
        match text.char_indices().nth(MAX_DESCRIPTION) {
            Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
            None => text,
        }
    }
}

/// Returns whether a credential is sent where a parameter is.
fn carries(carrier: &Carrier, place: Place, name: &str) -> bool {
    match carrier {
        Carrier::Header(header) => place == Place::Header && header.as_str().eq_ignore_ascii_case(name),
        Carrier::Query(query) => place == Place::Query && query == name,
        Carrier::Cookie(cookie) => place == Place::Cookie && cookie == name,
        Carrier::Bearer | Carrier::Basic => false,
    }
}

/// Returns what the method says about the effects of a call, unless the document says it.
fn hints(operation: &Operation<'_>) -> ToolAnnotations {
    let own = |name: &str| operation.own(name)?.value.as_bool();
    let is_read = matches!(operation.method, "get" | "head" | "options");
    let mut hints = ToolAnnotations::new();
    hints.read_only_hint = Some(own("read-only").unwrap_or(is_read));
    if hints.read_only_hint != Some(true) {
        let is_idempotent = matches!(operation.method, "put" | "delete");
        hints.idempotent_hint = Some(own("idempotent").unwrap_or(is_idempotent));
        // What another method destroys is not known: without a hint, it is taken to.
        hints.destructive_hint =
            own("destructive").or_else(|| (operation.method == "delete").then_some(true));
    }
    hints.open_world_hint = Some(own("open-world").unwrap_or(true));
    hints
}
