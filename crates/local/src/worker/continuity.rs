//! Finds the longest beginning of a prompt that was evaluated before, wherever it is, and brings it into place.
//!
//! In the order of their cost: the conversation's own sequence, another sequence that begins the same (its cells are
//! shared), a copy in memory, a file. A conversation that rests waits in memory where that costs nothing but its copy.
//! Invariant: the slots say what the cache holds; a conversation in use never gives way, and a side job never costs a
//! conversation its state.

use std::sync::Arc;

use llama_cpp_2::token::LlamaToken;
use sha2::{Digest, Sha256};

use super::cells::position;
use super::keep::Stored;
use super::prompt::Prompt;
use super::session::{Session, count, sequence};
use super::slots::{Checkpoint, IN_THE_WAY, Slot, WORTH_KEEPING, WORTH_SHARING};
use crate::native::Part;
use crate::protocol::{Generate, WorkerError};
use crate::saved::hex;

/// Bytes of state for each second that the model rests longer before it is saved.
const BYTES_PER_SECOND: usize = 32 << 20;

impl Session<'_> {
    /// Whether a part of a sequence can be forgotten.
    pub(super) fn rewinds(&self) -> bool {
        !self.model.is_recurrent() && !self.model.is_hybrid()
    }

    /// The slot, in the cache or not, whose tokens a request goes on from.
    pub(super) fn teller(&self, request: &Generate) -> Slot {
        let setting = setting_of(request);
        let in_cache = self.slots.teller(&request.messages, &setting);
        self.keep.teller(in_cache, &request.messages, &setting).cloned().unwrap_or_default()
    }

    /// Gives a request a sequence that holds the beginning of its tokens and nothing else.
    pub(super) fn settle(&mut self, request: &Generate, prompt: &Prompt) -> usize {
        let tokens = &prompt.tokens;
        let rewinds = self.rewinds();
        if !request.side {
            self.bring_back(request, tokens);
        }
        let best = self.slots.best(&request.conversation, tokens, rewinds);
        let (index, kept) = match best {
            Some((index, kept)) if self.goes_on_in(index, request, tokens) => {
                (index, self.rewind(index, kept))
            }
            Some((donor, kept)) => {
                let target = self.sequence_for(request, tokens, Some(donor));
                let shared = if target == donor || kept < WORTH_SHARING { 0 } else { kept };
                (target, self.fork(donor, target, shared))
            }
            None => (self.sequence_for(request, tokens, None), 0),
        };
        self.slots[index].begin(tokens.to_vec(), kept);
        self.slots[index].setting = setting_of(request);
        self.slots[index].history.told.clone_from(&prompt.told);
        self.slots.touch(index, &request.conversation);
        if !request.side && self.clear_the_way(&request.conversation, tokens) {
            self.move_up(index);
        }
        index
    }

    /// Lets other conversations wait in memory, and forgets what side jobs read: one cache is for all, and attention looks
    /// over its cells up to the last one in use, whoever's they are. What they share with the one that goes on stays for
    /// it. Whether any went.
    fn clear_the_way(&mut self, conversation: &str, tokens: &[LlamaToken]) -> bool {
        if !self.rewinds() {
            return false;
        }
        let in_the_way: Vec<usize> = (0..self.slots.len())
            .filter(|index| {
                let slot = &self.slots[*index];
                slot.conversation.as_deref() != Some(conversation)
                    && slot.cached - slot.common(tokens) >= IN_THE_WAY
            })
            .collect();
        let mut any = false;
        for index in in_the_way {
            // What is not saved yet is left where it is until it is: the file would be waited for.
            let unsaved = self.keep.disk.is_some() && self.slots[index].changed;
            let size = self.context.copy_size(sequence(index), Part::Whole) as u64;
            if index == self.slots.side() || !unsaved && self.keep.has_room(size) {
                self.vacate(index);
                any = true;
            }
        }
        any
    }

    /// Brings a conversation's cells to the front of the cache, where others gave way.
    fn move_up(&mut self, index: usize) {
        let slot = &self.slots[index];
        let shares = |other: &Slot| other.common(&slot.tokens) >= WORTH_SHARING;
        let shared = (0..self.slots.len()).any(|other| other != index && shares(&self.slots[other]));
        let size = self.context.copy_size(sequence(index), Part::Whole) as u64;
        if slot.cached < WORTH_KEEPING || shared || !self.keep.has_room(size) {
            return;
        }
        self.trim(index);
        let Some(copy) = self.context.copy(sequence(index), Part::Whole) else { return };
        self.context.forget(sequence(index));
        if !self.context.put_back(sequence(index), &copy, Part::Whole) {
            self.slots[index].cached = 0;
        }
    }

    /// Whether the conversation goes on in this slot, and loses nothing that it may want back.
    fn goes_on_in(&self, index: usize, request: &Generate, tokens: &[LlamaToken]) -> bool {
        let slot = &self.slots[index];
        let own = slot.conversation.as_deref() == Some(&request.conversation);
        if request.side {
            return index == self.slots.side();
        }
        own && index != self.slots.side()
            && !slot.is_another_branch(slot.common(tokens), &request.messages, &setting_of(request))
    }

    /// An empty sequence for a request that does not go on in the one it begins with.
    fn sequence_for(&mut self, request: &Generate, tokens: &[LlamaToken], donor: Option<usize>) -> usize {
        let replaceable = (0..self.slots.len())
            .find(|index| Some(*index) != donor && self.goes_on_in(*index, request, tokens));
        let Some(index) = replaceable else {
            let index = self.slots.free_or_oldest(donor);
            self.vacate(index);
            return index;
        };
        // An earlier state of the same, which nobody wants back.
        self.context.forget(sequence(index));
        let old = self.slots.take(index);
        if let (Some(disk), Some(name)) = (&self.keep.disk, old.file) {
            disk.writer.delete(name);
        }
        index
    }

    /// Takes a slot's sequence back to so many tokens; gives how many it could keep.
    fn rewind(&mut self, index: usize, kept: usize) -> usize {
        if !self.rewinds() && kept == self.slots[index].cached {
            return kept;
        }
        self.cut(index, kept)
    }

    /// Takes a sequence back to so many tokens, whatever lies behind them.
    fn cut(&mut self, index: usize, kept: usize) -> usize {
        let sequence = sequence(index);
        if !self.rewinds() {
            let Some(checkpoint) = self.slots[index].checkpoint(kept).cloned() else {
                self.context.forget(sequence);
                return 0;
            };
            if !self.context.put_back(sequence, &checkpoint.state, Part::Recurrent) {
                return 0;
            }
            // Behind the checkpoint only attention is left, which can forget.
            let place = position(&self.slots[index].tokens[..checkpoint.at]);
            return if self.context.forget_from(sequence, place) { checkpoint.at } else { 0 };
        }
        let place = position(&self.slots[index].tokens[..kept]);
        if self.context.forget_from(sequence, place) {
            return kept;
        }
        self.context.forget(sequence);
        0
    }

    /// Lets an empty sequence begin with the first tokens of another.
    fn fork(&mut self, donor: usize, target: usize, kept: usize) -> usize {
        if kept == 0 {
            return 0;
        }
        let place = position(&self.slots[donor].tokens[..kept]);
        self.context.share_prefix(sequence(donor), sequence(target), place);
        let cached = self.slots[donor].cached;
        let forked = self.slots[donor].fork(kept);
        self.slots[target] = forked;
        if self.rewinds() || kept == cached {
            return kept;
        }
        self.slots[target].cached = cached;
        self.rewind(target, kept)
    }

    /// Empties a sequence; what it held is kept elsewhere when that is worth it.
    fn vacate(&mut self, index: usize) {
        let kept = self.stash(index);
        self.put_away(index, kept);
    }

    fn put_away(&mut self, index: usize, kept: Option<Option<Vec<u8>>>) {
        self.context.forget(sequence(index));
        let slot = self.slots.take(index);
        if let Some(memory) = kept {
            self.keep.put(Stored { slot, memory });
        }
    }

    /// Takes the cache back behind an evaluation that did not end; part of it may be there.
    pub(super) fn undo(&mut self, index: usize, start: usize) {
        self.slots[index].cached = self.cut(index, start);
    }

    /// Makes sure that a sequence holds what its slot counts, and no guess behind it.
    fn trim(&mut self, index: usize) {
        if self.rewinds() {
            self.slots[index].cached = self.cut(index, self.slots[index].cached);
        }
    }

    /// Copies what a sequence holds: to its file, and to memory. None when it is not kept anywhere.
    fn stash(&mut self, index: usize) -> Option<Option<Vec<u8>>> {
        if index == self.slots.side() || self.slots[index].cached < WORTH_KEEPING {
            return None;
        }
        self.trim(index);
        if self.slots[index].changed {
            self.save(index);
        }
        let size = self.context.copy_size(sequence(index), Part::Whole) as u64;
        let memory = if size <= self.keep.options.memory_bytes {
            // Before it is copied, or there would be one state more than there may be.
            self.keep.make_room(size);
            self.context.copy(sequence(index), Part::Whole)
        } else {
            None
        };
        // A file that holds less than the slot does not stand for it.
        if self.slots[index].changed {
            self.slots[index].file = None;
        }
        (memory.is_some() || self.slots[index].file.is_some()).then_some(memory)
    }

    /// Brings a kept state into a sequence when it has much more of the prompt than the cache.
    fn bring_back(&mut self, request: &Generate, tokens: &[LlamaToken]) {
        let rewinds = self.rewinds();
        let best = self.slots.best(&request.conversation, tokens, rewinds);
        let at_hand = best.map_or(0, |(_, kept)| kept);
        let Some(mut stored) = self.keep.take_better(tokens, at_hand + WORTH_KEEPING, rewinds) else {
            return;
        };
        // Before it comes, so that it stands in front.
        self.clear_the_way(&request.conversation, tokens);
        let target = self.slots.free_or_oldest(None);
        self.vacate(target);
        let path = match &stored.memory {
            Some(_) => None,
            None => match self.keep.open_file(&mut stored.slot) {
                Ok(path) => Some(path),
                Err(error) => return self.keep.reject(&stored.slot, &error.to_string()),
            },
        };
        loop {
            let back = match (&stored.memory, &path) {
                (Some(bytes), _) => self.context.put_back(sequence(target), bytes, Part::Whole),
                (None, Some(path)) => self.context.load(sequence(target), path, stored.slot.cached),
                (None, None) => false,
            };
            if back {
                self.slots[target] = stored.slot;
                return;
            }
            match self.slots.oldest_filled(target) {
                Some(victim) => self.vacate(victim),
                None => return self.keep.reject(&stored.slot, "llama.cpp refuses it"),
            }
        }
    }

    /// Makes room in a full cache. The oldest conversation gives way.
    pub(super) fn make_room(&mut self, index: usize) -> Result<(), WorkerError> {
        let full = WorkerError::ContextFull {
            needed: count(self.slots[index].tokens.len()),
            available: self.context_size(),
        };
        let Some(victim) = self.slots.oldest_filled(index) else { return Err(full) };
        let kept = self.stash(victim);
        if kept.is_none() && index == self.slots.side() && self.slots[victim].cached >= WORTH_KEEPING {
            // A side job costs no conversation its state.
            return Err(full);
        }
        self.put_away(victim, kept);
        Ok(())
    }

    /// Copies the state of a model that cannot forget a part, to come back to it.
    pub(super) fn checkpoint(&mut self, index: usize) {
        if let Some(checkpoint) = self.copied(index) {
            self.slots[index].add_checkpoint(checkpoint);
        }
    }

    /// The same for a draft, which goes on from here.
    pub(super) fn checkpoint_draft(&mut self, index: usize) {
        if let Some(checkpoint) = self.copied(index) {
            self.slots[index].add_draft(checkpoint);
        }
    }

    fn copied(&mut self, index: usize) -> Option<Checkpoint> {
        let at = self.slots[index].cached;
        let state = self.context.copy(sequence(index), Part::Recurrent)?;
        Some(Checkpoint { at, state: Arc::new(state) })
    }

    /// How long the model has to rest until the next state is saved; none when all are.
    pub(super) fn rest(&mut self) -> Option<std::time::Duration> {
        let index = self.unsaved()?;
        let seconds = self.context.copy_size(sequence(index), Part::Whole) / BYTES_PER_SECOND;
        Some(self.keep.options.rest + std::time::Duration::from_secs(seconds as u64))
    }

    /// Saves the state that was used last; false when all are saved.
    pub(super) fn save_one(&mut self) -> bool {
        match self.unsaved() {
            Some(index) => {
                self.trim(index);
                self.save(index);
                // What cannot be saved now is tried again when it has grown.
                self.slots[index].changed = false;
                true
            }
            None => false,
        }
    }

    /// Saves everything, and waits until it is on disk.
    pub(super) fn save_all(&mut self) {
        while self.save_one() {}
        if let Some(disk) = &self.keep.disk {
            disk.writer.wait();
        }
    }

    fn unsaved(&self) -> Option<usize> {
        self.keep.disk.as_ref()?;
        let chats = self.slots.chats().iter().enumerate();
        let unsaved = chats.filter(|(_, slot)| slot.changed && slot.cached >= WORTH_KEEPING);
        unsaved.max_by_key(|(_, slot)| slot.last_use).map(|(index, _)| index)
    }

    /// Writes a slot's state to its file.
    fn save(&mut self, index: usize) {
        let Some(disk) = &self.keep.disk else { return };
        let slot = &self.slots[index];
        let size = self.context.copy_size(sequence(index), Part::Whole) as u64;
        if size > self.keep.options.disk_bytes {
            return;
        }
        let name = self.keep.name_for(slot);
        let temporary = match disk.folder.temporary(&name) {
            Ok(temporary) => temporary,
            Err(error) => return self.keep.note(format!("the state {name} was not saved: {error}")),
        };
        if !self.context.save(sequence(index), &temporary, &slot.tokens[..slot.cached]) {
            let _ = std::fs::remove_file(&temporary);
            return self.keep.note(format!("the state {name} was not saved: the disk may be full"));
        }
        disk.writer.seal(temporary, name.clone(), self.keep.header(slot), slot.checkpoints.clone());
        let slot = &mut self.slots[index];
        slot.file = Some(name);
        slot.changed = false;
    }

    /// Forgets a conversation, or all of them: in the cache, in memory, on disk.
    pub(super) fn forget(&mut self, conversation: Option<&str>) {
        for index in 0..self.slots.len() {
            let of = self.slots[index].conversation.as_deref();
            if of.is_some() && conversation.is_none_or(|name| of == Some(name)) {
                self.context.forget(sequence(index));
                self.slots.take(index);
            }
        }
        self.asked.forget(conversation);
        self.keep.forget(conversation);
    }
}

/// Digest of what stands before the messages.
fn setting_of(request: &Generate) -> String {
    let mut digest = Sha256::new();
    if !request.tools_last {
        request.tools.iter().for_each(|tool| digest.update(tool.to_string()));
    }
    let system = request.messages.first().filter(|message| message["role"] == "system");
    digest.update(system.and_then(|message| message["content"].as_str()).unwrap_or_default());
    hex(&digest.finalize()[..16])
}
