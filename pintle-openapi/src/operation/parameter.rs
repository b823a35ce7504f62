use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName};
use serde::Deserialize;
use serde_json::Value;

use super::{Media, Operation};
use crate::document::Node;

/// The limit of parameters of an operation.
const MAX_PARAMETERS: usize = 256;

/// Where a parameter is sent.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Place {
    Path,
    Query,
    Header,
    Cookie,
}

impl Place {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header => "header",
            Self::Cookie => "cookie",
        }
    }
}

/// How a value becomes text.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Style {
    Form,
    Simple,
    Label,
    Matrix,
    SpaceDelimited,
    PipeDelimited,
    DeepObject,
}

impl Style {
    fn fits(self, place: Place) -> bool {
        match place {
            Place::Path => matches!(self, Self::Simple | Self::Label | Self::Matrix),
            Place::Query => !matches!(self, Self::Simple | Self::Label | Self::Matrix),
            Place::Header => self == Self::Simple,
            Place::Cookie => self == Self::Form,
        }
    }
}

/// The form of a value in a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Encoding {
    /// By a style.
    Style { style: Style, explode: bool },
    /// As JSON text.
    Json,
}

/// A parameter of a request.
#[derive(Debug)]
pub(crate) struct Parameter {
    /// The argument that has its value.
    pub(crate) argument: String,
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) encoding: Encoding,
    pub(crate) allow_reserved: bool,
    /// The value that is sent for a required parameter without one.
    pub(crate) default: Option<Value>,
}

/// A parameter, as the document has it.
#[derive(Clone, Copy)]
pub(crate) struct ParameterSource<'a> {
    pub(crate) name: &'a str,
    pub(crate) place: Place,
    pub(crate) node: Node<'a>,
    pub(crate) schema: Option<Node<'a>>,
    pub(crate) encoding: Encoding,
    pub(crate) is_required: bool,
}

/// Returns the parameters of an operation: those of its path too, unless it has the same.
///
/// # Errors
///
/// The reason why requests of the operation cannot be made.
pub(crate) fn sources<'a>(
    operation: &Operation<'a>,
    warnings: &mut Vec<String>,
) -> Result<Vec<ParameterSource<'a>>, String> {
    let mut sources: Vec<ParameterSource<'a>> = Vec::new();
    for (node, is_own) in [(operation.item, false), (operation.node, true)] {
        let before = sources.len();
        for node in node.items_of("parameters") {
            let Some(source) = source(node.resolve()?, warnings)? else { continue };
            let is_same = |other: &ParameterSource<'_>| {
                let is_header = source.place == Place::Header;
                let same_name =
                    source.name == other.name || is_header && source.name.eq_ignore_ascii_case(other.name);
                same_name && source.place == other.place
            };
            match sources.iter().position(is_same) {
                Some(number) if is_own && number < before => sources[number] = source,
                Some(_) => warnings.push(format!("the parameter `{}` is there twice", source.name)),
                None if sources.len() == MAX_PARAMETERS => {
                    return Err(format!("it has more than {MAX_PARAMETERS} parameters"));
                }
                None => sources.push(source),
            }
        }
    }
    Ok(sources)
}

/// Returns whether a header is one of a connection, and not of a request.
pub(crate) fn is_of_connection(header: &HeaderName) -> bool {
    const OF_CONNECTION: [&str; 9] = [
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ];
    OF_CONNECTION.contains(&header.as_str())
}

fn source<'a>(node: Node<'a>, warnings: &mut Vec<String>) -> Result<Option<ParameterSource<'a>>, String> {
    let name = node.text("name").filter(|name| !name.is_empty()).ok_or("a parameter has no name")?;
    let is_required = node.flag("required") == Some(true);
    let Some(place) = node.read::<Place>("in") else {
        let place = node.text("in").unwrap_or("nowhere");
        if place == "querystring" && !is_required {
            warnings.push(format!("the parameter `{name}` is a whole query string, and is left out"));
            return Ok(None);
        }
        let shown: String = place.chars().take(32).collect();
        return Err(format!("its parameter `{name}` is in `{shown}`, which is not supported"));
    };
    if place == Place::Header {
        let header: HeaderName =
            name.parse().map_err(|_| format!("its parameter `{name}` has a name that no header can have"))?;
        // They have their values from elsewhere.
        if [ACCEPT, AUTHORIZATION, CONTENT_TYPE].contains(&header) || is_of_connection(&header) {
            return Ok(None);
        }
    }
    let is_cookie_letter = |byte: u8| byte.is_ascii_graphic() && !b"()<>@,;:\\\"/?={}".contains(&byte);
    if place == Place::Cookie && !name.bytes().all(is_cookie_letter) {
        return Err(format!("its parameter `{name}` has a name that no cookie can have"));
    }
    let (schema, encoding) = match node.members_of("content").next() {
        Some((media_type, content)) => {
            let plain = Encoding::Style { style: default_style(place), explode: false };
            let is_json = Media::of(media_type) == Media::Json;
            (content.get("schema"), if is_json { Encoding::Json } else { plain })
        }
        None => {
            let style = match node.text("style") {
                None => default_style(place),
                Some(text) => {
                    let style = node.read("style").filter(|style: &Style| style.fits(place));
                    style.ok_or_else(|| {
                        let shown: String = text.chars().take(32).collect();
                        format!(
                            "its parameter `{name}` has the style `{shown}`, which its place does not have"
                        )
                    })?
                }
            };
            let explode = node.flag("explode").unwrap_or(style == Style::Form);
            (node.get("schema"), Encoding::Style { style, explode })
        }
    };
    let is_required = is_required || place == Place::Path;
    Ok(Some(ParameterSource { name, place, node, schema, encoding, is_required }))
}

fn default_style(place: Place) -> Style {
    match place {
        Place::Path | Place::Header => Style::Simple,
        Place::Query | Place::Cookie => Style::Form,
    }
}
