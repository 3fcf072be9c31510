//! Images on their way to the worker: named in the text by their digest, sent beside it once.
//!
//! Invariant: pure. What a model cannot see is told in words, so that its answer can say so.

use lectern_core::{Blob, ChatRequest, Message, UserMessage};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Stands before and behind the name of an image in a text. A private-use character, like the other marks of prompts;
/// what somebody typed names no image of the request, and stays text.
pub(crate) const MARK: char = '\u{10ff08}';

/// Whether this build can show images to models.
pub const AVAILABLE: bool = cfg!(feature = "vision");

/// What models are told in place of an image.
const UNSEEN: &str = "[an image that this model cannot see]";

/// An image of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Image {
    /// Its name.
    pub(crate) digest: String,
    /// Its bytes: PNG, JPEG, BMP or GIF.
    pub(crate) base64: String,
}

/// How an image is named in a text.
pub(crate) fn named(blob: &Blob) -> String {
    format!("{MARK}{}{MARK}", digest_of(blob))
}

/// What stands in a message for an image.
pub(crate) fn in_text(blob: &Blob, seen: bool) -> String {
    if seen && is_readable(blob) { named(blob) } else { format!("\n\n{UNSEEN}\n\n") }
}

/// The images of a request, each once.
pub(crate) fn images_of(request: &ChatRequest) -> Vec<Image> {
    let mut out: Vec<Image> = Vec::new();
    let users = request.messages.iter().filter_map(|message| match message {
        Message::User(user) => Some(user),
        Message::Assistant(_) | Message::Tool(_) => None,
    });
    for blob in users.flat_map(UserMessage::images).filter(|blob| is_readable(blob)) {
        let digest = digest_of(blob);
        if !out.iter().any(|image| image.digest == digest) {
            out.push(Image { digest, base64: blob.base64.clone() });
        }
    }
    out
}

/// Whether llama.cpp's reader of images knows this kind, by its first bytes. Others (WebP, films) it would pass on to a
/// program that it finds on the machine.
fn is_readable(blob: &Blob) -> bool {
    // The first bytes are in the first letters; their number is a multiple of four.
    let Some(start) = blob.base64.get(..12.min(blob.base64.len())) else { return false };
    let start = Blob { mime: String::new(), base64: start.to_owned() }.bytes().unwrap_or_default();
    is_known_kind(&start)
}

/// The same for bytes.
pub(crate) fn is_known_kind(bytes: &[u8]) -> bool {
    const KINDS: [&[u8]; 4] = [b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"BM", b"GIF8"];
    KINDS.iter().any(|kind| bytes.starts_with(kind))
}

fn digest_of(blob: &Blob) -> String {
    Sha256::digest(&blob.base64).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use lectern_core::Part;

    use super::*;

    #[test]
    fn images_go_along_once_and_only_those_that_can_be_read() {
        let picture = Blob::of("image/png", b"\x89PNG\r\n\x1a\n and more");
        let film = Blob::of("image/webp", b"RIFF\x10\0\0\0WEBPVP8 ");
        let parts =
            vec![Part::Image(picture.clone()), Part::Image(film.clone()), Part::Image(picture.clone())];
        let message = Message::User(UserMessage { parts, context: None });
        let request = ChatRequest { messages: vec![message.clone(), message], ..ChatRequest::default() };
        let images = images_of(&request);
        assert_eq!(images.len(), 1);
        assert_eq!(in_text(&picture, true), format!("{MARK}{}{MARK}", images[0].digest));
        assert!(in_text(&picture, false).contains(UNSEEN) && in_text(&film, true).contains(UNSEEN));
        assert!(in_text(&Blob { mime: "image/png".into(), base64: "§§".into() }, true).contains(UNSEEN));
    }
}
