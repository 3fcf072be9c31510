//! The images of requests: what each becomes in a prompt, and reading it into the cache.
//!
//! Invariant: an image that a prompt holds is known here with its bytes, as long as that prompt is worked on. Its pixels
//! are kept only until they were looked at.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use llama_cpp_2::token::LlamaToken;

use super::cells::cells;
use crate::images::{Image, MARK};
use crate::native::{Context, DecodeError, Piece, Pixels, Seen, Sight};
use crate::protocol::WorkerError;

/// Images that are kept beside those of the present request.
const KEPT: usize = 32;
/// Pixels of an image; the reader takes three bytes for each before it scales.
const MOST_PIXELS: usize = 64_000_000;

/// The images of the last requests.
pub(super) struct Images<'model> {
    sight: Option<Sight<'model>>,
    /// The last used last.
    known: Vec<Known>,
}

struct Known {
    image: Image,
    tokens: Vec<LlamaToken>,
    parts: Vec<Part>,
}

/// A part of an image that takes places among the tokens.
struct Part {
    cells: Vec<LlamaToken>,
    /// Its place among the pieces.
    piece: usize,
    pixels: Option<Pixels>,
}

/// A piece of a rendered text.
pub(super) enum Stretch<'text> {
    /// Words.
    Text(&'text str),
    /// The tokens of an image.
    Image(&'text [LlamaToken]),
}

/// A part of an image that was looked at, and the places that it takes.
pub(super) struct Look {
    seen: Seen,
    known: usize,
    part: usize,
    pub(super) places: usize,
}

impl<'model> Images<'model> {
    /// For a model with a part that sees, or without one.
    pub(super) fn new(sight: Option<Sight<'model>>) -> Self {
        Self { sight, known: Vec::new() }
    }

    /// Gets the images of a request ready to be named in its prompt.
    pub(super) fn take_in(&mut self, images: &[Image]) -> Result<(), WorkerError> {
        let Some(sight) = &self.sight else { return Ok(()) };
        for (place, image) in images.iter().enumerate() {
            let known = self.known.iter().position(|known| known.image.digest == image.digest);
            let known = match known {
                Some(place) => self.known.remove(place),
                None => known_image(sight, image).map_err(|error| numbered(error, place, images.len()))?,
            };
            self.known.push(known);
        }
        let spare = self.known.len().saturating_sub(images.len());
        for old in &mut self.known[..spare] {
            old.parts.iter_mut().for_each(|part| part.pixels = None);
        }
        self.known.drain(..spare.saturating_sub(KEPT));
        Ok(())
    }

    /// A rendered text, cut where images are named.
    pub(super) fn stretches<'text>(&'text self, text: &'text str) -> Vec<Stretch<'text>> {
        let mut out = Vec::new();
        let mut rest = text;
        // What stands before the end of `rest` and names nothing is text.
        let mut from = 0;
        while let Some(begin) = rest[from..].find(MARK).map(|at| at + from) {
            let inside = begin + MARK.len_utf8();
            let Some(end) = rest[inside..].find(MARK).map(|at| at + inside) else { break };
            match self.known.iter().find(|known| known.image.digest == rest[inside..end]) {
                Some(known) => {
                    out.push(Stretch::Text(&rest[..begin]));
                    out.push(Stretch::Image(&known.tokens));
                    rest = &rest[end + MARK.len_utf8()..];
                    from = 0;
                }
                None => from = end,
            }
        }
        out.push(Stretch::Text(rest));
        out
    }

    /// Looks at the part of an image that these tokens begin with. None when it was stopped.
    pub(super) fn look(&mut self, tokens: &[LlamaToken]) -> Result<Option<Look>, WorkerError> {
        let places = |known: &Known| known.parts.iter().position(|part| tokens.starts_with(&part.cells));
        let found = self.known.iter().enumerate().rev().find_map(|(at, known)| Some((at, places(known)?)));
        let (Some(sight), Some((known, part))) = (&mut self.sight, found) else {
            return Err(compute("an image of the prompt is not there any more"));
        };
        let Known { image, parts, .. } = &mut self.known[known];
        let wanted = &mut parts[part];
        if wanted.pixels.is_none() {
            let mut pieces = pieces_of(sight, image)?;
            if let Some(Piece::Pixels(pixels)) = pieces.get_mut(wanted.piece).map(take_piece) {
                wanted.pixels = Some(pixels);
            }
        }
        let Some(pixels) = &wanted.pixels else { return Err(compute("an image is not what it was")) };
        let seen = sight.look(pixels).map_err(|error| compute(&error.0))?;
        Ok(seen.map(|seen| Look { seen, known, part, places: wanted.cells.len() }))
    }

    /// Puts what was seen into a sequence.
    pub(super) fn put(
        &mut self,
        look: &Look,
        context: &mut Context<'_>,
        sequence: i32,
        position: usize,
    ) -> Result<(), DecodeError> {
        let part = &mut self.known[look.known].parts[look.part];
        let (Some(sight), Some(pixels)) = (&mut self.sight, &part.pixels) else {
            return Err(DecodeError::Failed(-3));
        };
        sight.put(&look.seen, pixels, context, sequence, position)?;
        part.pixels = None;
        Ok(())
    }
}

fn take_piece(piece: &mut Piece) -> Piece {
    std::mem::replace(piece, Piece::Tokens(Vec::new()))
}

fn known_image(sight: &Sight<'_>, image: &Image) -> Result<Known, WorkerError> {
    let mut tokens = Vec::new();
    let mut parts = Vec::new();
    for (number, piece) in pieces_of(sight, image)?.into_iter().enumerate() {
        match piece {
            Piece::Tokens(words) => tokens.extend(words),
            Piece::Pixels(pixels) => {
                let cells = cells(&image.digest, number, pixels.places, pixels.positions);
                tokens.extend(&cells);
                parts.push(Part { cells, piece: number, pixels: Some(pixels) });
            }
        }
    }
    Ok(Known { image: image.clone(), tokens, parts })
}

fn pieces_of(sight: &Sight<'_>, image: &Image) -> Result<Vec<Piece>, WorkerError> {
    let refused = |reason: String| WorkerError::Refused { reason };
    let bytes = STANDARD.decode(&image.base64).map_err(|_| refused("is damaged".to_owned()))?;
    // A small file can hold more pixels than the machine has memory.
    let size = imagesize::blob_size(&bytes).map_err(|_| refused("is damaged".to_owned()))?;
    if size.width.saturating_mul(size.height) > MOST_PIXELS {
        return Err(refused(format!(
            "is {} × {} pixels; {} million are the most",
            size.width,
            size.height,
            MOST_PIXELS / 1_000_000
        )));
    }
    sight.pieces(&bytes).map_err(|error| refused(error.0))
}

/// The error of one of several images says which it is, in the order in which they were sent.
fn numbered(error: WorkerError, place: usize, of: usize) -> WorkerError {
    match error {
        WorkerError::Refused { reason } => {
            let which = if of == 1 { "the image".to_owned() } else { format!("image {} of {of}", place + 1) };
            WorkerError::Refused { reason: format!("{which} {reason}") }
        }
        other => other,
    }
}

fn compute(reason: &str) -> WorkerError {
    WorkerError::Compute { reason: reason.to_owned() }
}
