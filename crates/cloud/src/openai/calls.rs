//! The calls of one reply, put together from their pieces.
//!
//! Invariant: pure. Every piece of every call finds its call, whether servers count them, name them, or do neither. What
//! a server says twice is told once; a call is told in the order in which it began.

use lectern_core::Delta;
use serde_json::{Map, Value, json};

use super::wire::{Call, Function};
use crate::names::Names;
use crate::sse::LIMIT;

/// The calls of one reply.
pub(super) struct Calls {
    all: Vec<State>,
    names: Names,
    /// Bytes of arguments, of all calls.
    size: usize,
}

/// A call as far as it has come.
#[derive(Default)]
struct State {
    index: Option<i64>,
    id: Option<String>,
    name: Option<String>,
    extra: Option<Value>,
    arguments: String,
    /// Its start was told.
    started: bool,
    /// Bytes of its arguments that were told.
    told: usize,
}

/// A piece of a call.
struct Piece<'a> {
    index: Option<i64>,
    id: Option<&'a str>,
    name: Option<&'a str>,
    arguments: &'a str,
}

impl Calls {
    pub(super) fn new(names: Names) -> Self {
        Self { all: Vec::new(), names, size: 0 }
    }

    /// Whether any call came.
    pub(super) fn any(&self) -> bool {
        !self.all.is_empty()
    }

    /// Whether they are longer than any that are meant.
    pub(super) fn are_too_long(&self) -> bool {
        self.size > LIMIT
    }

    /// Takes a piece in, and tells what can be told.
    pub(super) fn take(&mut self, call: Call, out: &mut Vec<Delta>) {
        let Call { index, id, function, extra_content } = call;
        let id = match id {
            // Mistral once wrote the word.
            Some(Value::String(id)) => Some(id).filter(|id| !id.is_empty() && id != "null"),
            Some(Value::Number(id)) => Some(id.to_string()),
            Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => None,
        };
        let Function { name, arguments } = function.unwrap_or_default();
        let name = name.filter(|name| !name.is_empty());
        let arguments = argument_text(arguments);
        self.size += arguments.len();
        // A piece that says nothing begins no call.
        let says_nothing = id.is_none() && name.is_none() && arguments.is_empty();
        let piece = Piece { index, id: id.as_deref(), name: name.as_deref(), arguments: &arguments };
        let place = match self.place(&piece) {
            Some(place) => place,
            None if says_nothing => return,
            None => {
                self.all.push(State::default());
                self.all.len() - 1
            }
        };
        self.all[place].grow(&piece);
        let state = &mut self.all[place];
        state.extra = state.extra.take().or(extra_content);
        if state.name.is_some() && !state.arguments.is_empty() && !is_empty_object(&state.arguments) {
            self.start(place + 1, out);
            self.tell_arguments(place, out);
        }
    }

    /// Something else follows: every call with a name has begun.
    pub(super) fn settle(&mut self, out: &mut Vec<Delta>) {
        self.start(self.all.len(), out);
    }

    /// The reply is over: tells what was kept back.
    pub(super) fn finish(&mut self, out: &mut Vec<Delta>) {
        for state in &mut self.all {
            // A call that never got a name is told all the same: the model hears that there is no such tool.
            if state.name.is_none() && !state.arguments.is_empty() {
                state.name = Some(String::new());
            }
        }
        for place in 0..self.all.len() {
            self.start(place + 1, out);
            if self.all[place].started {
                self.tell_arguments(place, out);
            }
        }
    }

    /// Tells the starts of the first calls, as far as they were not told.
    fn start(&mut self, count: usize, out: &mut Vec<Delta>) {
        for (place, state) in self.all.iter_mut().enumerate().take(count) {
            let Some(name) = state.name.as_deref().filter(|_| !state.started) else { continue };
            out.push(Delta::ToolCallStarted {
                index: number(place),
                // The core gives an id where the server gave none.
                id: state.id.clone().unwrap_or_default().into(),
                tool: self.names.tool(name),
                provider_data: state
                    .extra
                    .as_ref()
                    .map(|extra| json!({ "openai": { "extra_content": extra } })),
            });
            state.started = true;
        }
    }

    fn tell_arguments(&mut self, place: usize, out: &mut Vec<Delta>) {
        let state = &mut self.all[place];
        let fragment = state.arguments.get(state.told..).unwrap_or_default().to_owned();
        state.told = state.arguments.len();
        if !fragment.is_empty() {
            out.push(Delta::ToolCallArguments { index: number(place), fragment });
        }
    }

    /// The call that a piece belongs to, unless it begins one.
    fn place(&self, piece: &Piece<'_>) -> Option<usize> {
        let last = self.all.len().checked_sub(1);
        let by_id = |id: &str| self.all.iter().rposition(|call| call.id.as_deref() == Some(id));
        let known = match (piece.index, piece.id) {
            // Of the same number, the last one counts: servers that number every call 0 tell them apart by their ids.
            (Some(index), id) => self
                .all
                .iter()
                .rposition(|call| call.index == Some(index))
                .or_else(|| id.and_then(by_id).filter(|at| self.all[*at].index.is_none())),
            (None, Some(id)) => by_id(id),
            (None, None) => last.filter(|last| self.all[*last].goes_on_with(piece)),
        };
        match known.filter(|place| !self.all[*place].is_other(piece)) {
            Some(place) => Some(place),
            None if piece.index.is_none() && piece.id.is_some() && piece.name.is_none() => last,
            None => None,
        }
    }
}

impl State {
    fn grow(&mut self, piece: &Piece<'_>) {
        self.index = self.index.or(piece.index);
        self.id = self.id.take().or_else(|| piece.id.map(str::to_owned));
        if let Some(name) = piece.name {
            match &mut self.name {
                Some(begun) if begun != name && !self.started => begun.push_str(name),
                Some(_) => {}
                none => *none = Some(name.to_owned()),
            }
        }
        if begins_object(piece.arguments) {
            // An empty object that stands there until the arguments come, and a whole call that is said once more.
            if is_empty_object(&self.arguments) && self.told == 0 {
                self.arguments.clear();
            } else if is_same(&self.arguments, piece.arguments) {
                return;
            }
        }
        self.arguments.push_str(piece.arguments);
    }

    /// Whether a piece that says neither number nor id belongs to this call, the last one.
    fn goes_on_with(&self, piece: &Piece<'_>) -> bool {
        match (self.name.as_deref(), piece.name) {
            // A name begins a call, unless the last one still waits for its name.
            (_, None) | (None, Some(_)) => true,
            // The same name may stand on every piece.
            (Some(here), Some(name)) => {
                let begun = !self.arguments.is_empty();
                here == name && !(begun && (begins_object(piece.arguments) || is_whole(&self.arguments)))
            }
        }
    }

    /// Whether a piece that has this call's number or id belongs to another one all the same.
    fn is_other(&self, piece: &Piece<'_>) -> bool {
        // Most pieces have no name. Arguments are read only where it matters: they may be long, and their pieces many.
        let Some(name) = piece.name else { return false };
        let other_id = matches!((self.id.as_deref(), piece.id), (Some(here), Some(id)) if here != id);
        let begun = !self.arguments.is_empty();
        // A name may come in pieces, as long as nothing of the arguments has come.
        let other_name = self.name.as_deref().is_some_and(|here| here != name) && (begun || other_id);
        // Servers that make a new id for each piece go on with arguments that are not whole.
        let goes_on = || begun && !begins_object(piece.arguments) && !is_whole(&self.arguments);
        // A second whole call of the same name, number and id can only be told by its arguments.
        let begins = || {
            begins_object(piece.arguments)
                && is_whole(&self.arguments)
                && !is_empty_object(&self.arguments)
                && !is_same(&self.arguments, piece.arguments)
        };
        other_name || (other_id && !goes_on()) || begins()
    }
}

fn number(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

fn begins_object(piece: &str) -> bool {
    piece.trim_start().starts_with('{')
}

fn is_empty_object(arguments: &str) -> bool {
    arguments.len() < 8 && arguments.trim() == "{}"
}

fn object(arguments: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(arguments).ok()
}

fn is_whole(arguments: &str) -> bool {
    object(arguments).is_some()
}

/// Whether both are whole and say the same.
fn is_same(one: &str, other: &str) -> bool {
    object(one).is_some_and(|one| object(other).is_some_and(|other| one == other))
}

fn argument_text(arguments: Option<Value>) -> String {
    match arguments {
        Some(Value::String(text)) => text,
        None | Some(Value::Null) => String::new(),
        Some(other) => other.to_string(),
    }
}
