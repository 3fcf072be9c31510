//! What stands inside a message: text, images, files.
//!
//! Invariant: nothing is fetched from anywhere; an image or a file comes with the request, or not at all.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use lectern_app::picture;
use lectern_core::{Blob, Part};
use serde_json::Value;

use crate::error::ApiError;
use crate::fields::{Fields, missing, not_one_of, wrong_type};

/// The text of a message whose content is a text, or a list of texts. `refusal` is a text of an assistant.
pub fn text_content(at: &str, content: Value) -> Result<String, ApiError> {
    let items = match content {
        Value::String(text) => return Ok(text),
        Value::Array(items) => items,
        other => return Err(wrong_type(at.to_owned(), "a string or an array of parts", &other)),
    };
    let mut out = Vec::with_capacity(items.len());
    for (index, item) in items.into_iter().enumerate() {
        let mut part = Fields::of(format!("{at}[{index}]"), item)?;
        match part.word("type", &["text", "refusal"])? {
            Some(kind) => out.push(part.required_string(kind)?),
            None => return Err(missing(part.at("type"))),
        }
        part.ignore(&HINTS);
        part.end()?;
    }
    Ok(out.join("\n"))
}

/// Says nothing about the content.
const HINTS: [&str; 2] = ["prompt_cache_breakpoint", "cache_control"];

/// The content of a user's message.
pub fn user_content(at: &str, content: Value) -> Result<Vec<Part>, ApiError> {
    match content {
        Value::String(text) => Ok(vec![Part::Text { text }]),
        Value::Array(items) => {
            let parts = items.into_iter().enumerate();
            parts.map(|(index, item)| user_part(Fields::of(format!("{at}[{index}]"), item)?)).collect()
        }
        other => Err(wrong_type(at.to_owned(), "a string or an array of parts", &other)),
    }
}

fn user_part(mut fields: Fields) -> Result<Part, ApiError> {
    let kind = fields.required_string("type")?;
    let part = match kind.as_str() {
        "text" => Part::Text { text: fields.required_string("text")? },
        "image_url" => image(fields.required_object("image_url")?)?,
        "file" => file(fields.required_object("file")?)?,
        "input_audio" => return Err(ApiError::unsupported(fields.at("type"), "sound is not served")),
        other => return Err(not_one_of(fields.at("type"), other, &["text", "image_url", "file"])),
    };
    fields.ignore(&HINTS);
    fields.end()?;
    Ok(part)
}

fn image(mut fields: Fields) -> Result<Part, ApiError> {
    let at = fields.at("url");
    let url = fields.required_string("url")?;
    fields.word("detail", &["auto", "low", "high", "original"])?;
    fields.end()?;
    let Some(data) = DataUrl::read(&url) else {
        let message =
            "an image has to come with the request, as `data:image/png;base64,…`; nothing is fetched";
        return Err(ApiError::invalid("unsupported_image_url", at, message));
    };
    let bytes = data.bytes().ok_or_else(|| not_base64(&at))?;
    picture_of(&at, &bytes)
}

fn file(mut fields: Fields) -> Result<Part, ApiError> {
    let at = fields.at("file_data");
    if fields.value("file_id").is_some() {
        let message = "files are not kept here; send its bytes as `file_data`";
        return Err(ApiError::unsupported(fields.at("file_id"), message));
    }
    let name = fields.string("filename")?.unwrap_or_default();
    let data = fields.required_string("file_data")?;
    fields.end()?;
    let url = DataUrl::read(&data);
    let bytes = match &url {
        Some(url) => url.bytes(),
        None => decoded(&data),
    };
    let bytes = bytes.ok_or_else(|| not_base64(&at))?;
    if bytes.starts_with(b"%PDF-") || url.is_some_and(|url| url.mime.starts_with("image/")) {
        return picture_of(&at, &bytes);
    }
    match String::from_utf8(bytes) {
        Ok(text) if name.is_empty() => Ok(Part::Text { text }),
        Ok(text) => Ok(Part::Text { text: format!("{name}:\n{text}") }),
        Err(_) => Err(ApiError::unsupported(at, "the file is neither text nor an image nor a PDF document")),
    }
}

/// Decoded and encoded anew, so that no reader behind this meets bytes from outside.
fn picture_of(at: &str, bytes: &[u8]) -> Result<Part, ApiError> {
    let picture = picture::read(bytes)
        .map_err(|fault| ApiError::invalid("invalid_image", at, format!("`{at}` can't be used: {fault}")))?;
    Ok(Part::Image(Blob::of(picture.mime, &picture.bytes)))
}

fn not_base64(at: &str) -> ApiError {
    ApiError::invalid("invalid_base64", at, format!("`{at}` is not base64"))
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).or_else(|_| STANDARD_NO_PAD.decode(text)).ok()
}

/// `data:MIME;base64,DATA` (RFC 2397).
struct DataUrl<'a> {
    mime: &'a str,
    base64: &'a str,
}

impl<'a> DataUrl<'a> {
    fn read(url: &'a str) -> Option<Self> {
        let scheme = url.get(..5).filter(|scheme| scheme.eq_ignore_ascii_case("data:"))?;
        let (head, base64) = url[scheme.len()..].split_once(',')?;
        let mime = head.strip_suffix(";base64")?;
        Some(Self { mime: mime.split(';').next().unwrap_or_default(), base64 })
    }

    fn bytes(&self) -> Option<Vec<u8>> {
        decoded(self.base64)
    }
}
