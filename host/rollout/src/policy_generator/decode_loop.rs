//! The loop of the decoding thread: it accepts requests, feeds open turns in one pass, and draws.
//!
//! A sequence with a turn under way **generates**; one whose tools run is **idle**. A pass feeds at most `slots`
//! generating sequences, the oldest first. One that waits for pages takes no slot. A sequence holds pages of the KV
//! cache, whether it generates or not. If pages run short, sequences lose theirs. They keep their token ids, and read
//! them again when they continue:
//!
//! - A sequence that has pages takes more as it grows. If none is free, idle sequences lose theirs, the one that was
//!   fed longest ago first. Then younger generating ones do, the youngest first. If there is none, the sequence waits.
//! - A sequence that has no pages begins if all its tokens fit into the free ones, beside a page more for each older
//!   sequence in the pass, so that it does not lose its pages at once. If they do not fit, idle sequences lose theirs,
//!   but only those that were last fed at least as many passes ago as they have pages. A pass takes about as long as
//!   reading a page again. So pages are taken only if they were unused for about the time that reading them again
//!   takes. If the tokens still do not fit, the sequence waits, and so do all younger ones that have no pages.
//! - The oldest generating sequence always begins, and takes what it needs as if it grew.
//!
//! So every pass feeds the oldest generating sequence, and a cache of one context is enough for all to end.
//!
//! Prompts and single tokens share a pass, because it reads every weight once for all of them. But no sequence that decodes
//! and has a slot waits for a prompt: a pass keeps one token for each of them, and prompts get the rest.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Instant;

use rlf_policy::{Decoder, Draw, Entry, Model, PAGE_TOKENS};

use super::{Command, PolicyGeneratorConfig, Reply};
use crate::generate::{GenerateError, GenerateRequest, Generated, GeneratorTimes, SequenceId};

/// An open sequence.
struct Sequence {
    /// The model that continues it; None for the generator's own.
    model: Option<Arc<Model>>,
    /// All its tokens. The last ones are not yet in the cache.
    ids: Vec<u32>,
    /// Number of tokens whose keys and values are in the cache; 0 if it has no pages.
    cached: usize,
    /// The largest `cached` so far: what is fed below it is read again.
    read: usize,
    /// The pass that fed it last.
    fed: u64,
    /// The turn under way, if any.
    turn: Option<Turn>,
    /// The prompt it began with, which it may share with other sequences.
    prompt: Arc<[u32]>,
}

/// The address of a model. An open sequence holds its model, and a key leaves with its sequence, so no other model can have
/// the address meanwhile.
type ModelId = Option<usize>;

impl Sequence {
    fn model_id(&self) -> ModelId {
        let model = self.model.as_ref();
        model.map(|model| Arc::as_ptr(model) as usize)
    }

    /// True if it wants nothing but the token that it drew last.
    fn decodes(&self) -> bool {
        self.cached > 0 && self.ids.len() == self.cached + 1
    }

    /// The key of its prompt.
    fn beginning(&self) -> (ModelId, Arc<[u32]>) {
        (self.model_id(), self.prompt.clone())
    }
}

/// The model of a sequence.
fn model_id(sequences: &BTreeMap<SequenceId, Sequence>, id: SequenceId) -> ModelId {
    sequences.get(&id).and_then(Sequence::model_id)
}

struct Turn {
    request: GenerateRequest,
    ids: Vec<u32>,
    log_probs: Vec<f32>,
    reply: Reply,
}

/// The first positions of a sequence that has no pages.
enum Beginning {
    /// It reads them.
    Read,
    /// It shares so many of another sequence.
    Shared(SequenceId, usize),
    /// It waits for an older sequence that is reading the same prompt.
    Awaited,
}

/// The start of a sequence without pages.
enum Begun {
    /// It begins with this pass.
    Now,
    /// It waits for an older sequence that is reading the same prompt.
    Awaits,
    /// It waits for pages.
    NoRoom,
}

/// The state of the decoding thread.
pub(super) struct DecodeLoop<'a> {
    model: &'a Model,
    decoder: Decoder,
    stop_ids: Vec<u32>,
    config: PolicyGeneratorConfig,
    /// Ordered by age, so that the same sequences always make the same pass.
    sequences: BTreeMap<SequenceId, Sequence>,
    /// The sequence whose pages have a prompt, as its model reads it, or that is reading it.
    prompts: HashMap<(ModelId, Arc<[u32]>), SequenceId>,
    /// Number of passes so far.
    passes: u64,
    times: GeneratorTimes,
}

impl<'a> DecodeLoop<'a> {
    pub(super) fn new(
        model: &'a Model,
        decoder: Decoder,
        stop_ids: Vec<u32>,
        config: PolicyGeneratorConfig,
    ) -> Self {
        Self {
            model,
            decoder,
            stop_ids,
            config,
            sequences: BTreeMap::new(),
            prompts: HashMap::new(),
            passes: 0,
            times: GeneratorTimes::default(),
        }
    }

    /// Handles `first`, and then what comes through `inbox`, until its other end is gone.
    pub(super) fn run(
        &mut self,
        first: Command,
        inbox: &Receiver<Command>,
    ) -> rlf_policy::Result<()> {
        self.handle(first);
        loop {
            if self
                .sequences
                .values()
                .all(|sequence| sequence.turn.is_none())
            {
                let asleep = Instant::now();
                let Ok(command) = inbox.recv() else {
                    return Ok(());
                };
                if !self.sequences.is_empty() {
                    self.times.waiting += asleep.elapsed();
                }
                self.handle(command);
            }
            loop {
                match inbox.try_recv() {
                    Ok(command) => self.handle(command),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return Ok(()),
                }
            }
            let started = Instant::now();
            self.pass()?;
            self.times.busy += started.elapsed();
        }
    }

    fn handle(&mut self, command: Command) {
        match command {
            Command::Generate(request, model, reply) => self.accept(request, model, reply),
            Command::Close(id) => self.close(id),
            Command::Times(reply) => {
                let _ = reply.send(std::mem::take(&mut self.times));
            }
        }
    }

    fn accept(&mut self, request: GenerateRequest, model: Option<Arc<Model>>, reply: Reply) {
        let capacity = self.decoder.context();
        let open = self.sequences.get(&request.sequence);
        let (held, cached) = open.map_or((0, 0), |open| (open.ids.len(), open.cached));
        let tokens = held + request.append.len();
        let wanted = tokens + request.max_new_tokens;
        if wanted > capacity || tokens == cached {
            let _ = reply.send(Err(GenerateError::TooLong { wanted, capacity }));
            return;
        }
        let sequence = self
            .sequences
            .entry(request.sequence)
            .or_insert_with(|| Sequence {
                model,
                ids: Vec::new(),
                cached: 0,
                read: 0,
                fed: 0,
                turn: None,
                prompt: request.append.as_slice().into(),
            });
        sequence.ids.extend_from_slice(&request.append);
        sequence.turn = Some(Turn {
            request,
            ids: Vec::new(),
            log_probs: Vec::new(),
            reply,
        });
    }

    fn close(&mut self, id: SequenceId) {
        if let Some(sequence) = self.sequences.remove(&id) {
            self.give_back(id, &sequence.beginning());
        }
    }

    /// Takes the pages of a sequence. It reads its tokens again when it continues.
    fn evict(&mut self, id: SequenceId) {
        let Some(sequence) = self.sequences.get_mut(&id) else {
            return;
        };
        sequence.cached = 0;
        let beginning = sequence.beginning();
        if sequence.turn.is_some() {
            self.times.preempted += 1;
        } else {
            self.times.evicted += 1;
        }
        self.give_back(id, &beginning);
    }

    /// Gives back the pages of a sequence with this beginning.
    fn give_back(&mut self, id: SequenceId, beginning: &(ModelId, Arc<[u32]>)) {
        self.decoder.close(id.0);
        let Some(holder) = self
            .prompts
            .get_mut(beginning)
            .filter(|holder| **holder == id)
        else {
            return;
        };
        // Another sequence that has read the same prompt takes over.
        let heir = self.sequences.iter().find(|(_, other)| {
            other.cached >= beginning.1.len() && other.beginning() == *beginning
        });
        if let Some((heir, _)) = heir {
            *holder = *heir;
        } else {
            self.prompts.remove(beginning);
        }
    }

    fn beginning(&self, id: SequenceId, sequence: &Sequence) -> Beginning {
        let prompt = &sequence.prompt;
        let holder = self.prompts.get(&sequence.beginning());
        let Some(holder) = holder.filter(|holder| **holder != id) else {
            return Beginning::Read;
        };
        let held = self.sequences.get(holder).map_or(0, |held| held.cached);
        if held >= prompt.len() {
            // Not the last token of all: the draw needs its logits.
            Beginning::Shared(*holder, prompt.len().min(sequence.ids.len() - 1))
        } else if *holder < id {
            Beginning::Awaited
        } else {
            Beginning::Read
        }
    }

    /// The sequences that the next pass feeds, the oldest first, and the number of tokens of each. Their pages are
    /// free.
    fn choose(&mut self) -> rlf_policy::Result<Vec<(SequenceId, usize)>> {
        let generating: Vec<(SequenceId, bool)> = self
            .sequences
            .iter()
            .filter(|(_, sequence)| sequence.turn.is_some())
            .map(|(id, sequence)| (*id, sequence.decodes()))
            .collect();
        let mut decoding = generating.iter().filter(|(_, decodes)| *decodes).count();
        let mut chosen = Vec::with_capacity(generating.len().min(self.config.slots));
        let mut budget = self.config.step_tokens.max(1);
        // Pages that the chosen ones take, and whether more sequences may begin.
        let (mut taken, mut may_begin) = (0, true);
        for (place, (id, decodes)) in generating.into_iter().enumerate() {
            let slots = self.config.slots - chosen.len();
            if budget == 0 || slots == 0 {
                break;
            }
            decoding -= usize::from(decodes);
            // The oldest one goes on in any case. A prompt leaves tokens for younger ones that decode.
            let kept = if decodes { 0 } else { decoding.min(slots - 1) };
            let most = (budget.saturating_sub(kept)).max(usize::from(place == 0));
            if most == 0 {
                continue;
            }
            let Some(sequence) = self.sequences.get(&id) else {
                continue;
            };
            let tokens = sequence.ids.len();
            if sequence.cached == 0 {
                if !may_begin {
                    continue;
                }
                // The oldest one begins in any case.
                let reserved = (place > 0).then_some(taken + chosen.len());
                match self.begin(id, reserved)? {
                    Begun::Now => {}
                    Begun::Awaits => continue,
                    Begun::NoRoom => {
                        may_begin = false;
                        continue;
                    }
                }
            }
            let Some(cached) = self.sequences.get(&id).map(|sequence| sequence.cached) else {
                continue;
            };
            let count = (tokens - cached).min(most);
            if let Some(wanted) = self.make_room(id, cached, cached + count, taken) {
                taken += wanted;
                budget -= count;
                chosen.push((id, count));
            }
        }
        Ok(chosen)
    }

    /// Lets a sequence without pages begin if all its tokens fit beside `reserved` pages, or in any case if that is
    /// None. Sequences whose pages were not used for long lose them to it.
    fn begin(&mut self, id: SequenceId, reserved: Option<usize>) -> rlf_policy::Result<Begun> {
        loop {
            let Some(sequence) = self.sequences.get(&id) else {
                return Ok(Begun::Awaits);
            };
            // Asked again after each eviction, because the prompt that it shares may be gone.
            let shared = match self.beginning(id, sequence) {
                Beginning::Read => None,
                Beginning::Shared(holder, len) => Some((holder, len)),
                Beginning::Awaited => return Ok(Begun::Awaits),
            };
            // Whole pages of a prompt are shared, and the rest of it is copied.
            let kept = shared.map_or(0, |(_, len)| len / PAGE_TOKENS);
            let wanted = sequence.ids.len().div_ceil(PAGE_TOKENS) - kept;
            let free = self.decoder.free_pages();
            if reserved.is_some_and(|reserved| reserved + wanted > free) {
                let passes = self.passes;
                let unused =
                    |idle: &Sequence| passes - idle.fed >= idle.cached.div_ceil(PAGE_TOKENS) as u64;
                let Some(victim) = self.longest_idle(unused) else {
                    return Ok(Begun::NoRoom);
                };
                self.evict(victim);
                continue;
            }
            if let Some((holder, len)) = shared {
                self.decoder.share_prefix(holder.0, id.0, len)?;
                if let Some(sequence) = self.sequences.get_mut(&id) {
                    sequence.cached = len;
                }
            } else {
                self.prompts.insert(sequence.beginning(), id);
            }
            return Ok(Begun::Now);
        }
    }

    /// Takes pages from other sequences until a sequence can fill the positions `start..end`, beside those that take
    /// `taken` pages. Returns the number of pages that it takes, or `None` if it must wait.
    fn make_room(
        &mut self,
        id: SequenceId,
        start: usize,
        end: usize,
        taken: usize,
    ) -> Option<usize> {
        loop {
            let wanted = self.decoder.wanted_pages(id.0, start, end);
            if taken + wanted <= self.decoder.free_pages() {
                return Some(wanted);
            }
            let idle = self.longest_idle(|_| true);
            let victim = idle.or_else(|| self.youngest_after(id))?;
            self.evict(victim);
        }
    }

    /// The idle sequence with pages that was fed longest ago, out of those that may lose them.
    fn longest_idle(&self, may_lose: impl Fn(&Sequence) -> bool) -> Option<SequenceId> {
        let idle = self
            .sequences
            .iter()
            .filter(|(_, other)| other.turn.is_none() && other.cached > 0 && may_lose(other));
        idle.min_by_key(|(_, other)| other.fed).map(|(id, _)| *id)
    }

    /// The youngest generating sequence with pages, if it is younger than this one.
    fn youngest_after(&self, id: SequenceId) -> Option<SequenceId> {
        let mut younger = self
            .sequences
            .iter()
            .rev()
            .take_while(|(other, _)| **other > id);
        younger
            .find(|(_, other)| other.cached > 0)
            .map(|(other, _)| *other)
    }

    /// Makes a forward pass over sequences that have tokens to feed: one for each of their models. Draws a token for each
    /// sequence that has then read all of them.
    fn pass(&mut self) -> rlf_policy::Result<()> {
        let mut chosen = self.choose()?;
        self.passes += 1;
        // A stable sort: the oldest come first among those of a model.
        chosen.sort_by_cached_key(|(id, _)| model_id(&self.sequences, *id));
        let same_model = |(one, _): &(SequenceId, usize), (other, _): &(SequenceId, usize)| {
            model_id(&self.sequences, *one) == model_id(&self.sequences, *other)
        };
        let parts = chosen.chunk_by(same_model).map(<[_]>::to_vec);
        let parts: Vec<Vec<(SequenceId, usize)>> = parts.collect();
        for part in parts {
            let ended = self.feed(&part);
            let is_own = part
                .first()
                .is_none_or(|(id, _)| model_id(&self.sequences, *id).is_none());
            match ended {
                Err(error) if !is_own => self.fail(&part, &error),
                ended => ended?,
            }
        }
        Ok(())
    }

    /// Ends the turns of sequences whose model cannot compute. Others go on.
    fn fail(&mut self, part: &[(SequenceId, usize)], error: &rlf_policy::PolicyError) {
        for (id, _) in part {
            let turn = (self.sequences.get_mut(id)).and_then(|sequence| sequence.turn.take());
            self.close(*id);
            if let Some(turn) = turn {
                let failed = GenerateError::Unavailable(error.to_string());
                // A caller that has gone away needs no answer.
                let _ = turn.reply.send(Err(failed));
            }
        }
    }

    /// Makes a forward pass over some tokens of sequences that have the same model.
    fn feed(&mut self, chosen: &[(SequenceId, usize)]) -> rlf_policy::Result<()> {
        let Some(first) = chosen.first().and_then(|(id, _)| self.sequences.get(id)) else {
            return Ok(());
        };
        let own = first.model.clone();
        let fed = chosen
            .iter()
            .filter_map(|(id, count)| Some((id, self.sequences.get(id)?, count)));
        // The draw after each entry; none while a long prompt has more tokens to feed.
        let (entries, draws): (Vec<Entry<'_>>, Vec<Option<Draw>>) = fed
            .map(|(id, sequence, count)| {
                let end = sequence.cached + count;
                let entry = Entry {
                    sequence: id.0,
                    start: sequence.cached,
                    tokens: &sequence.ids[sequence.cached..end],
                };
                let turn = sequence.turn.as_ref().filter(|_| end == sequence.ids.len());
                let draw = turn.map(|turn| {
                    let mut key = turn.request.key;
                    key.position += turn.ids.len() as u64;
                    Draw {
                        sampler: turn.request.sampler,
                        key,
                    }
                });
                (entry, draw)
            })
            .unzip();
        let model = own.as_deref().unwrap_or(self.model);
        let drawn = self.decoder.sample(model, &entries, &draws)?;
        self.times.passes += 1;
        for ((id, count), drawn) in chosen.iter().copied().zip(drawn) {
            self.times.fed += count as u64;
            // Only now: until a pass is done, its keys and values must not be shared.
            if let Some(sequence) = self.sequences.get_mut(&id) {
                let again = sequence.read.saturating_sub(sequence.cached).min(count);
                self.times.read_again += again as u64;
                sequence.cached += count;
                sequence.read = sequence.read.max(sequence.cached);
                sequence.fed = self.passes;
            }
            if let Some(drawn) = drawn {
                self.times.sampled += 1;
                self.advance(id, drawn.id, drawn.log_prob);
            }
        }
        Ok(())
    }

    fn advance(&mut self, id: SequenceId, token: u32, log_prob: f32) {
        let Some(sequence) = self.sequences.get_mut(&id) else {
            return;
        };
        // It is fed with the next pass, or with the observation that follows.
        sequence.ids.push(token);
        let Some(turn) = sequence.turn.as_mut() else {
            return;
        };
        turn.ids.push(token);
        turn.log_probs.push(log_prob);
        let full = turn.ids.len() >= turn.request.max_new_tokens.max(1);
        if (full || self.stop_ids.contains(&token))
            && let Some(turn) = sequence.turn.take()
        {
            // A caller that has gone away is about to close the sequence.
            let _ = turn.reply.send(Ok(Generated {
                ids: turn.ids,
                log_probs: turn.log_probs,
            }));
        }
    }
}

#[cfg(test)]
mod tests;
