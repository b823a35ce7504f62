use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use pintle::{
    directory::Directory,
    server::{Cx, RequestError, ResourceRoute, TemplateRoute},
    types::{
        JsonObject,
        schema::{Resource, ResourceContents, ResourceTemplate},
    },
    uri::{Template, Vars, uri_from_path},
};
#[cfg(feature = "schemars")]
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::{
    ArgumentEntry, CallFault, CommandEntry, EntryFault, SecretValue, ToolEntry,
    argument::{all_used, check, checked, input_schema},
    command::Command,
    turn::turn,
    units::read_duration,
};

/// The time that a command has, if its entry says nothing.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The commands of a resource that run at the same time.
const MAX_RUNNING: usize = 8;

/// A resource of a file: a text, a file, the files of a folder, or the output of a command.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[cfg_attr(feature = "schemars", derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ResourceEntry {
    /// The URI. That of a folder is the beginning of the URIs of its files. One with variables, such as `log://{unit}`, is for a command.
    pub uri: String,
    /// A name for people.
    pub title: Option<String>,
    /// A text for models and people: what the resource is.
    pub description: Option<String>,
    /// The MIME type; that of the name of a file by default.
    pub mime_type: Option<String>,
    /// The contents.
    pub text: Option<String>,
    /// The path of the file with the contents.
    pub file: Option<PathBuf>,
    /// The path of a folder. Its files are resources, but for hidden ones and symbolic links.
    pub folder: Option<PathBuf>,
    /// A program and its arguments, with `{name}` where a variable of the URI goes. Its output is the contents.
    pub command: Vec<String>,
    /// The types of the variables of the URI, which are texts by default: as arguments of tools.
    pub arguments: BTreeMap<String, ArgumentEntry>,
    /// The directory of the command: that of the file by default.
    pub cwd: Option<PathBuf>,
    /// Variables of the environment of the command.
    pub env: BTreeMap<String, SecretValue>,
    /// The names of variables that the command inherits, beside paths and locale; `NAME_*` for all that begin so.
    pub inherit: Vec<String>,
    /// The time after which the command is ended, such as `30s`; one minute by default.
    #[serde(deserialize_with = "read_duration")]
    #[cfg_attr(feature = "schemars", schemars(with = "Option<String>"))]
    pub timeout: Option<Duration>,
    /// The limit of bytes of the contents: 1 MiB by default, and 8 MiB for files.
    pub max_output: Option<usize>,
}

/// The resources of a file, checked.
#[derive(Debug, Default)]
pub struct ServedResources {
    entries: Vec<Arc<Served>>,
    folders: Vec<Directory>,
}

#[derive(Debug)]
struct Served {
    name: String,
    entry: ResourceEntry,
    contents: Contents,
}

#[derive(Debug)]
enum Contents {
    Text(String),
    /// A file of the directory.
    File(Directory, String),
    Command {
        command: Box<Command>,
        schema: Value,
        running: Semaphore,
    },
}

impl ServedResources {
    /// Checks the entries of a file. Paths are relative to its folder, and have to exist. It blocks.
    ///
    /// # Errors
    ///
    /// An entry is wrong. The error says what to write.
    pub fn new(entries: &BTreeMap<String, ResourceEntry>, folder: &Path) -> Result<Self, EntryFault> {
        let mut served = Self::default();
        for (name, entry) in entries {
            let added = match &entry.folder {
                Some(path) => directory(entry, &folder.join(path)).map(|one| served.folders.push(one)),
                None => Served::new(name, entry, folder).map(|one| served.entries.push(Arc::new(one))),
            };
            added.map_err(EntryFault::of("resource", name))?;
        }
        Ok(served)
    }

    /// Returns the routes of the resources, for [`Server::resource`](pintle::Server::resource) or
    /// [`Server::replace_resources`](pintle::Server::replace_resources).
    pub fn routes(&self) -> Vec<ResourceRoute> {
        self.entries.iter().filter(|served| !served.is_template()).map(Served::route).collect()
    }

    /// Returns the routes of the templates, for [`Server::template`](pintle::Server::template) or
    /// [`Server::replace_templates`](pintle::Server::replace_templates).
    pub fn templates(&self) -> Vec<TemplateRoute> {
        self.entries.iter().filter(|served| served.is_template()).map(Served::template).collect()
    }

    /// Returns the folders, for [`ServedFolders::replace`](crate::ServedFolders::replace).
    pub fn folders(&self) -> &[Directory] {
        &self.folders
    }

    /// Returns the URIs of the resources that are files, and the files.
    pub fn files(&self) -> impl Iterator<Item = (&str, &Path)> {
        self.entries.iter().filter_map(|served| match (&served.contents, &served.entry.file) {
            (Contents::File(..), Some(path)) => Some((&*served.entry.uri, &**path)),
            _ => None,
        })
    }
}

fn directory(entry: &ResourceEntry, path: &Path) -> Result<Directory, String> {
    if entry.text.is_some() || entry.file.is_some() || !entry.command.is_empty() {
        return Err("it has more than one of `text`, `file`, `folder` and `command`: keep one".to_owned());
    }
    let unreadable = |error| format!("the folder `{}` cannot be read: {error}", path.display());
    let mut directory = Directory::new(path).map_err(unreadable)?;
    directory = directory.prefix(&entry.uri).map_err(|error| error.to_string())?;
    Ok(match entry.max_output {
        Some(limit) => directory.max_file_size(limit as u64),
        None => directory,
    })
}

impl Served {
    fn new(name: &str, entry: &ResourceEntry, folder: &Path) -> Result<Self, String> {
        let mut entry = entry.clone();
        let contents = match (&entry.text, &entry.file, &entry.command[..]) {
            (Some(text), None, []) => Contents::Text(text.clone()),
            (None, Some(file), []) => {
                let path = folder.join(file);
                let contents = Self::file(&path)?;
                entry.file = Some(path);
                contents
            }
            (None, None, [_, ..]) => Self::command(&entry, folder)?,
            _ => {
                return Err(
                    "it needs exactly one of `text`, `file`, `folder` and `command`: write one".to_owned()
                );
            }
        };
        let has_variables = entry.uri.contains('{');
        if has_variables && !matches!(contents, Contents::Command { .. }) {
            return Err(format!("`{}` has variables, which are for a `command`: write them out", entry.uri));
        }
        Ok(Self { name: name.to_owned(), entry, contents })
    }

    fn file(path: &Path) -> Result<Contents, String> {
        let unreadable = |reason: String| format!("`{}` cannot be read: {reason}", path.display());
        let path = path.canonicalize().map_err(|error| unreadable(error.to_string()))?;
        if !path.is_file() {
            return Err(unreadable("it is no file".to_owned()));
        }
        let uri = uri_from_path(&path).map_err(|error| unreadable(error.to_string()))?;
        let directory = Directory::new(path.parent().unwrap_or(&path));
        let directory = directory.map_err(|error| unreadable(error.to_string()))?.flat().with_hidden();
        Ok(Contents::File(directory, uri))
    }

    fn command(entry: &ResourceEntry, folder: &Path) -> Result<Contents, String> {
        let template = Template::parse(&entry.uri).map_err(|error| error.to_string())?;
        if let Some(other) = entry.arguments.keys().find(|name| !template.names().any(|known| known == *name))
        {
            return Err(format!("`{other}` is no variable of `{}`: write `{{{other}}}` there", entry.uri));
        }
        let mut arguments = entry.arguments.clone();
        for name in template.names() {
            arguments.entry(name.to_owned()).or_insert_with(|| ArgumentEntry::Brief("string".to_owned()));
        }
        let arguments = checked(&arguments)?;
        let tool = ToolEntry {
            command: CommandEntry::Words(entry.command.clone()),
            cwd: entry.cwd.clone(),
            env: entry.env.clone(),
            inherit: entry.inherit.clone(),
            max_output: entry.max_output,
            ..ToolEntry::default()
        };
        let command = Command::new(&tool, &arguments, folder, entry.timeout.unwrap_or(TIMEOUT))?;
        all_used(&arguments, command.names())?;
        let schema = Value::Object(input_schema(&arguments));
        Ok(Contents::Command { command: Box::new(command), schema, running: Semaphore::new(MAX_RUNNING) })
    }

    fn is_template(&self) -> bool {
        self.entry.uri.contains('{')
    }

    fn route(self: &Arc<Self>) -> ResourceRoute {
        let mut resource = Resource::new(&self.entry.uri, &self.name);
        resource.title.clone_from(&self.entry.title);
        resource.description.clone_from(&self.entry.description);
        resource.mime_type.clone_from(&self.entry.mime_type);
        let served = self.clone();
        ResourceRoute::of(resource, move |cx: Cx| {
            let served = served.clone();
            async move { served.read(&cx, JsonObject::new()).await }
        })
    }

    fn template(self: &Arc<Self>) -> TemplateRoute {
        let mut template = ResourceTemplate::new(&self.entry.uri, &self.name);
        template.title.clone_from(&self.entry.title);
        template.description.clone_from(&self.entry.description);
        template.mime_type.clone_from(&self.entry.mime_type);
        let served = self.clone();
        TemplateRoute::of(template, move |cx: Cx, vars: Vars| {
            let served = served.clone();
            async move {
                let arguments =
                    vars.iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect();
                served.read(&cx, arguments).await
            }
        })
    }

    async fn read(&self, cx: &Cx, arguments: JsonObject) -> Result<ResourceContents, RequestError> {
        let uri = match cx.target() {
            Some(target) if self.is_template() => target.name().to_owned(),
            _ => self.entry.uri.clone(),
        };
        Ok(match &self.contents {
            Contents::Text(text) => ResourceContents::text(uri, text.clone()),
            Contents::File(directory, file) => {
                let (directory, file) = (directory.clone(), file.clone());
                let read = tokio::task::spawn_blocking(move || directory.read(&file)).await?;
                let mut contents = read.map_err(|error| {
                    tracing::warn!(%error, "a file cannot be read");
                    RequestError::new("the file cannot be read: see the server's log")
                })?;
                contents.uri = uri;
                contents.mime_type = self.entry.mime_type.clone().or(contents.mime_type);
                contents
            }
            Contents::Command { command, schema, running } => {
                let refused = |fault: CallFault| RequestError::bad_request(fault.to_string());
                check(schema, &arguments).map_err(refused)?;
                let plan = command.plan(&arguments).map_err(refused)?;
                let what = format!("the resource `{}`", self.name);
                let _turn = turn(&what, async { Ok(running.acquire().await?) }).await?;
                match String::from_utf8(command.run(cx, None, plan).await?) {
                    Ok(text) => ResourceContents::text(uri, text),
                    Err(error) => ResourceContents::blob(uri, STANDARD.encode(error.as_bytes())),
                }
            }
        })
    }
}
