//! The loop of the decoding thread: it accepts requests, feeds all open turns in one pass, and draws.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Instant;

use rlf_policy::{Decoder, Draw, Entry, Model};

use super::{Command, PolicyGeneratorConfig, Reply};
use crate::generate::{GenerateError, GenerateRequest, Generated, GeneratorTimes, SequenceId};

/// An open sequence: it has a slot in the KV cache.
struct Sequence {
    slot: usize,
    /// Number of tokens whose keys and values are in the slot.
    cached: usize,
    /// Tokens to feed before the next draw.
    pending: VecDeque<u32>,
    /// The turn under way, if any.
    turn: Option<Turn>,
    /// The prompt it began with. Other sequences may copy it from here.
    prompt: Option<Arc<[u32]>>,
}

struct Turn {
    request: GenerateRequest,
    ids: Vec<u32>,
    log_probs: Vec<f32>,
    reply: Reply,
}

/// The state of the decoding thread.
pub(super) struct DecodeLoop<'a> {
    model: &'a Model,
    decoder: Decoder,
    stop_ids: Vec<u32>,
    config: PolicyGeneratorConfig,
    /// Ordered, so that the same sequences always make the same pass.
    sequences: BTreeMap<SequenceId, Sequence>,
    free_slots: Vec<usize>,
    /// Requests of new sequences that wait for a slot, oldest first.
    queue: VecDeque<(GenerateRequest, Reply)>,
    /// The sequence from which a prompt may be copied.
    prompts: HashMap<Arc<[u32]>, SequenceId>,
    times: GeneratorTimes,
}

impl<'a> DecodeLoop<'a> {
    pub(super) fn new(
        model: &'a Model,
        decoder: Decoder,
        stop_ids: Vec<u32>,
        config: PolicyGeneratorConfig,
    ) -> Self {
        let free_slots = (0..decoder.slots()).rev().collect();
        Self {
            model,
            decoder,
            stop_ids,
            config,
            sequences: BTreeMap::new(),
            free_slots,
            queue: VecDeque::new(),
            prompts: HashMap::new(),
            times: GeneratorTimes::default(),
        }
    }

    /// Handles `first`, and then what comes through `inbox`, until its other end is gone.
    pub(super) fn run(
        mut self,
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
            Command::Generate(request, reply) => self.accept(request, reply),
            Command::Close(id) => self.close(id),
            Command::Times(reply) => {
                let _ = reply.send(std::mem::take(&mut self.times));
            }
        }
    }

    fn accept(&mut self, request: GenerateRequest, reply: Reply) {
        if !self.sequences.contains_key(&request.sequence) {
            let Some(slot) = self.free_slots.pop() else {
                self.queue.push_back((request, reply));
                return;
            };
            self.open(request.sequence, slot, &request.append);
        }
        let capacity = self.decoder.context();
        if let Some(sequence) = self.sequences.get_mut(&request.sequence) {
            sequence.pending.extend(&request.append);
            let wanted = sequence.cached + sequence.pending.len() + request.max_new_tokens;
            if wanted > capacity || sequence.pending.is_empty() {
                let _ = reply.send(Err(GenerateError::TooLong { wanted, capacity }));
                return;
            }
            sequence.turn = Some(Turn {
                request,
                ids: Vec::new(),
                log_probs: Vec::new(),
                reply,
            });
        }
    }

    fn open(&mut self, id: SequenceId, slot: usize, prompt: &[u32]) {
        let prompt: Arc<[u32]> = prompt.into();
        self.prompts.entry(prompt.clone()).or_insert(id);
        let sequence = Sequence {
            slot,
            cached: 0,
            pending: VecDeque::new(),
            turn: None,
            prompt: Some(prompt),
        };
        self.sequences.insert(id, sequence);
    }

    fn close(&mut self, id: SequenceId) {
        self.queue.retain(|(request, _)| request.sequence != id);
        let Some(sequence) = self.sequences.remove(&id) else {
            return;
        };
        self.free_slots.push(sequence.slot);
        if let Some(prompt) = sequence.prompt
            && self.prompts.get(&prompt) == Some(&id)
        {
            self.prompts.remove(&prompt);
            // Another sequence that has read the same prompt takes over.
            let heir = self.sequences.iter().find(|(_, other)| {
                other.cached >= prompt.len() && other.prompt.as_ref() == Some(&prompt)
            });
            if let Some((heir, _)) = heir {
                self.prompts.insert(prompt, *heir);
            }
        }
        if let Some((request, reply)) = self.queue.pop_front() {
            self.accept(request, reply);
        }
    }

    /// Copies the prompt of a sequence that has read nothing from the sequence that holds it. Returns false if the
    /// other sequence is still reading: then this one must wait.
    fn share_prompt(&mut self, id: SequenceId) -> rlf_policy::Result<bool> {
        let Some(sequence) = self.sequences.get(&id) else {
            return Ok(false);
        };
        let Some(prompt) = sequence.prompt.clone().filter(|_| sequence.cached == 0) else {
            return Ok(true);
        };
        let Some(holder) = self
            .prompts
            .get(&prompt)
            .copied()
            .filter(|holder| *holder != id)
        else {
            self.prompts.insert(prompt, id);
            return Ok(true);
        };
        let Some(held) = self.sequences.get(&holder) else {
            return Ok(true);
        };
        let (from, read) = (held.slot, held.cached);
        if read < prompt.len() {
            if held.turn.is_some() {
                return Ok(false);
            }
            // The holder was refused before it read anything, and will never read.
            self.prompts.insert(prompt, id);
            return Ok(true);
        }
        // All but the last token: the draw needs its logits.
        let shared = prompt.len() - 1;
        if let Some(sequence) = self.sequences.get_mut(&id) {
            self.decoder.copy_prefix(from, sequence.slot, shared)?;
            sequence.cached = shared;
            sequence.pending.drain(..shared);
        }
        Ok(true)
    }

    /// Makes one forward pass over every sequence that has tokens to feed. Draws a token for each
    /// sequence that has then read all of them.
    fn pass(&mut self) -> rlf_policy::Result<()> {
        let mut budget = self.config.step_tokens.max(1);
        let mut fed: Vec<(SequenceId, usize, usize, Vec<u32>)> = Vec::new();
        let active: Vec<SequenceId> = self
            .sequences
            .iter()
            .filter(|(_, s)| s.turn.is_some())
            .map(|(id, _)| *id)
            .collect();
        for id in active {
            if budget == 0 {
                break;
            }
            if !self.share_prompt(id)? {
                continue;
            }
            let Some(sequence) = self.sequences.get_mut(&id) else {
                continue;
            };
            let count = sequence.pending.len().min(budget);
            let tokens: Vec<u32> = sequence.pending.drain(..count).collect();
            budget -= count;
            fed.push((id, sequence.slot, sequence.cached, tokens));
        }
        let entries: Vec<Entry<'_>> = fed
            .iter()
            .map(|(_, slot, start, tokens)| Entry {
                slot: *slot,
                start: *start,
                tokens,
            })
            .collect();
        // The draw after each entry; none while a long prompt has more tokens to feed.
        let draws: Vec<Option<Draw>> = fed
            .iter()
            .map(|(id, ..)| {
                let sequence = self.sequences.get(id).filter(|s| s.pending.is_empty())?;
                let turn = sequence.turn.as_ref()?;
                let mut key = turn.request.key;
                key.position += turn.ids.len() as u64;
                Some(Draw {
                    sampler: turn.request.sampler,
                    key,
                })
            })
            .collect();
        let drawn = self.decoder.sample(self.model, &entries, &draws)?;
        self.times.passes += 1;
        self.times.fed += fed
            .iter()
            .map(|(_, _, _, tokens)| tokens.len() as u64)
            .sum::<u64>();
        for ((id, _, _, tokens), drawn) in fed.iter().zip(drawn) {
            // Only now: until a pass is done, its keys and values must not be copied.
            if let Some(sequence) = self.sequences.get_mut(id) {
                sequence.cached += tokens.len();
            }
            if let Some(drawn) = drawn {
                self.times.sampled += 1;
                self.advance(*id, drawn.id, drawn.log_prob);
            }
        }
        Ok(())
    }

    fn advance(&mut self, id: SequenceId, token: u32, log_prob: f32) {
        let Some(sequence) = self.sequences.get_mut(&id) else {
            return;
        };
        // It is fed with the next pass, or with the observation that follows.
        sequence.pending.push_back(token);
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
