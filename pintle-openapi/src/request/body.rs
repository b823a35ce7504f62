//! The body of a request.

use std::collections::HashMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::HeaderValue;
use percent_encoding::percent_decode_str;
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value};

use super::style::{self, PairStyle};
use crate::{
    operation::{Body, BodyKind, BodyShape, PartStyle, Style},
    url::encode,
};

/// Writes a body with its media type; `None` if none is sent.
pub(super) fn write(
    body: &Body,
    arguments: &Map<String, Value>,
) -> Result<Option<(HeaderValue, Bytes)>, String> {
    let (argument, value) = match &body.shape {
        BodyShape::Whole(argument) => (argument.as_str(), arguments.get(argument).cloned()),
        BodyShape::Members(members) => {
            let given = members.iter().filter_map(|member| {
                let value = arguments.get(&member.argument).or(member.default.as_ref())?;
                Some((member.name.clone(), value.clone()))
            });
            let given: Map<String, Value> = given.collect();
            let is_sent = body.is_required || !given.is_empty();
            ("body", is_sent.then_some(Value::Object(given)))
        }
    };
    let Some(value) = value else {
        return if body.is_required { Err(format!("`{argument}` is missing; give it")) } else { Ok(None) };
    };
    let faulty = |reason: String| format!("`{argument}`: {reason}");
    let mut content_type = body.content_type.clone();
    let bytes = match &body.kind {
        BodyKind::Json => value.to_string().into_bytes(),
        BodyKind::Text => style::text(&value).into_bytes(),
        BodyKind::Binary => binary(&value).map_err(faulty)?.1,
        BodyKind::Form(parts) => form(object(&value).map_err(faulty)?, parts).map_err(faulty)?.into_bytes(),
        BodyKind::Multipart(parts) => {
            let parts = multipart_parts(object(&value).map_err(faulty)?, parts).map_err(faulty)?;
            let (boundary, bytes) = multipart(&parts);
            content_type = format!("multipart/form-data; boundary={boundary}");
            bytes
        }
    };
    let content_type = HeaderValue::from_str(&content_type)
        .map_err(|_| "the media type of the body is no header; correct the document".to_owned())?;
    Ok(Some((content_type, bytes.into())))
}

fn object(value: &Value) -> Result<&Map<String, Value>, String> {
    value.as_object().ok_or_else(|| "it is not an object, which a form is made of; give one".to_owned())
}

/// Returns the bytes of a text in base64, and its media type if it is a `data:` URL.
fn binary(value: &Value) -> Result<(Option<String>, Vec<u8>), String> {
    let text = value.as_str().ok_or("it is not text; give the bytes in base64")?;
    let (kind, data) = match text.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")) {
        Some((kind, data)) => (Some(kind.to_owned()), data),
        None => (None, text),
    };
    let bytes = STANDARD.decode(data.trim()).map_err(|error| {
        format!("it is not base64 ({error}); use `A-Z a-z 0-9 + /`, with `=` up to a multiple of 4")
    })?;
    Ok((kind.filter(|kind| !kind.is_empty()), bytes))
}

/// Writes a form of URL encoding.
fn form(members: &Map<String, Value>, parts: &HashMap<String, PartStyle>) -> Result<String, String> {
    let (mut pairs, none) = (Vec::new(), PartStyle::default());
    for (name, value) in members.iter().filter(|(_, value)| !value.is_null()) {
        let PartStyle { style, allow_reserved, .. } = *parts.get(name).unwrap_or(&none);
        let has_parts = |value: &Value| value.is_object() || value.is_array();
        let is_json = value.is_object() || value.as_array().is_some_and(|items| items.iter().any(has_parts));
        // Without a style, what has parts is JSON.
        let json = (style.is_none() && is_json).then(|| Value::String(value.to_string()));
        let (style, explode) = style.unwrap_or((Style::Form, true));
        let style = PairStyle { style, explode, allow_reserved };
        style.append(&mut pairs, &encode(name), json.as_ref().unwrap_or(value))?;
    }
    Ok(pairs.join("&"))
}

/// A part of a multipart form: its head, and its bytes.
type Part = (String, Vec<u8>);

fn multipart_parts(
    members: &Map<String, Value>,
    styles: &HashMap<String, PartStyle>,
) -> Result<Vec<Part>, String> {
    let none = PartStyle::default();
    let mut parts = Vec::new();
    for (name, value) in members.iter().filter(|(_, value)| !value.is_null()) {
        let style = styles.get(name).unwrap_or(&none);
        if let Some((form, explode)) = style.style.filter(|_| !style.is_binary) {
            parts.extend(styled(name, value, form, explode).map_err(|reason| format!("`{name}`: {reason}"))?);
            continue;
        }
        let values = match value {
            // Each item is a part.
            Value::Array(items) if style.content_type.is_none() || style.is_binary => items.iter().collect(),
            value => vec![value],
        };
        for value in values {
            parts.push(part(name, value, style).map_err(|reason| format!("`{name}`: {reason}"))?);
        }
    }
    Ok(parts)
}

/// Returns the parts that a value is by a style: those of a query, and nothing is encoded.
fn styled(name: &str, value: &Value, style: Style, explode: bool) -> Result<Vec<Part>, String> {
    let mut pairs = Vec::new();
    PairStyle { style, explode, allow_reserved: false }.append(&mut pairs, &encode(name), value)?;
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let parts = pairs.iter().map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let head = format!("Content-Disposition: form-data; name=\"{}\"\r\n", quoted(&decoded(name)));
        (head, decoded(value).into_bytes())
    });
    Ok(parts.collect())
}

fn part(name: &str, value: &Value, style: &PartStyle) -> Result<Part, String> {
    let name = quoted(name);
    let wanted = style.content_type.as_deref().filter(|kind| !kind.contains('*'));
    let (file, content_type, bytes) = match value {
        value if style.is_binary => {
            let (kind, bytes) = binary(value)?;
            let kind = wanted.map(str::to_owned).or(kind);
            ("; filename=\"file\"", kind.or(Some("application/octet-stream".to_owned())), bytes)
        }
        Value::Object(_) | Value::Array(_) => {
            ("", Some(wanted.unwrap_or("application/json").to_owned()), value.to_string().into_bytes())
        }
        value => ("", wanted.map(str::to_owned), style::text(value).into_bytes()),
    };
    let mut head = format!("Content-Disposition: form-data; name=\"{name}\"{file}\r\n");
    if let Some(content_type) = content_type {
        if HeaderValue::from_str(&content_type).is_err() {
            return Err("its media type is no header; correct it".to_owned());
        }
        head += &format!("Content-Type: {content_type}\r\n");
    }
    Ok((head, bytes))
}

/// Returns a name as browsers send it.
fn quoted(name: &str) -> String {
    name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")
}

/// Joins parts with a boundary that none of them has.
fn multipart(parts: &[Part]) -> (String, Vec<u8>) {
    let mut hashed = ring::digest::Context::new(&SHA256);
    parts.iter().for_each(|(head, bytes)| {
        hashed.update(head.as_bytes());
        hashed.update(bytes);
    });
    // A hash of all parts is in none of them, unless somebody has found a cycle of SHA-256.
    let hash = digest(&SHA256, hashed.finish().as_ref());
    let boundary: String = hash.as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let mut body = Vec::new();
    for (head, bytes) in parts {
        body.extend_from_slice(format!("--{boundary}\r\n{head}\r\n").as_bytes());
        body.extend_from_slice(bytes);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    (boundary, body)
}
