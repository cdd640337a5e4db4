//! The policy as a generator: one thread that batches the turns of all trajectories.
//!
//! Every pass of the loop feeds, in one forward pass, the prompts that just arrived, the
//! observations that came back, and the last token of every turn under way. A trajectory whose
//! tools run keeps its slot in the KV cache and is not part of the pass. Sequences that begin with
//! the same prompt read it once: later ones copy the keys and values of the first.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use rlf_policy::{Decoder, DrawKey, Entry, Model, Sampler};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::generate::{GenerateError, GenerateRequest, Generated, Generator, SequenceId};

/// Sizes of the decoding engine.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EngineConfig {
    /// Sequences in the KV cache at once; more trajectories wait for a slot. Costs
    /// `slots x context x layers x kv_heads x head_dim x 8` bytes. Default 512.
    pub slots: usize,
    /// Tokens fed in one pass at the most; longer prompts take several. Default 8192.
    pub step_tokens: usize,
}

impl EngineConfig {
    /// Refuses sizes that cannot work, or that no machine has the memory for.
    pub fn validate(&self) -> Result<(), String> {
        for (key, value, most) in [
            ("slots", self.slots, 16_384),
            ("step_tokens", self.step_tokens, 1 << 20),
        ] {
            if !(1..=most).contains(&value) {
                return Err(format!("{key} = {value}: write 1 to {most}"));
            }
        }
        Ok(())
    }
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            slots: 512,
            step_tokens: 8192,
        }
    }
}

/// Where the engine's time went since it was last asked.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct EngineTimes {
    /// Forward passes and sampling.
    pub busy: Duration,
    /// Nothing to decode while at least one sequence was open: waiting for tools or rewards.
    pub waiting: Duration,
    /// Tokens sampled.
    pub sampled: u64,
    /// Tokens fed, prompts and observations included.
    pub fed: u64,
    /// Forward passes.
    pub passes: u64,
}

enum Command {
    Generate(
        GenerateRequest,
        oneshot::Sender<Result<Generated, GenerateError>>,
    ),
    Close(SequenceId),
    Times(oneshot::Sender<EngineTimes>),
}

/// The policy as a [`Generator`]. Dropping it ends its thread.
pub struct PolicyEngine {
    commands: Option<Sender<Command>>,
    thread: Option<JoinHandle<()>>,
    failure: Arc<Mutex<Option<String>>>,
}

impl PolicyEngine {
    /// Starts the thread. `model` is a handle on the policy's weights (see [`Model::share`]); an
    /// engine must not outlive their next change, because a sequence is sampled by one policy. `context` is the
    /// number of tokens a sequence may have, `workers` the number of threads of a forward pass.
    pub fn start(
        model: Model,
        stop_ids: Vec<u32>,
        context: usize,
        workers: usize,
        config: EngineConfig,
    ) -> Result<Self, GenerateError> {
        let failure = Arc::new(Mutex::new(None));
        let (commands, inbox) = channel();
        let report = failure.clone();
        let thread = std::thread::Builder::new()
            .name("rlf-decode".into())
            .spawn(move || {
                let decoder = Decoder::new(&model, config.slots, context, workers);
                let ended = decoder
                    .and_then(|decoder| Engine::new(&model, decoder, stop_ids, config).run(&inbox));
                if let Err(error) = ended {
                    *report
                        .lock()
                        .unwrap_or_else(std::sync::PoisonError::into_inner) =
                        Some(error.to_string());
                }
            })
            .map_err(|error| GenerateError::Stopped(error.to_string()))?;
        Ok(Self {
            commands: Some(commands),
            thread: Some(thread),
            failure,
        })
    }

    /// Where the time went since this was last asked.
    pub async fn take_times(&self) -> EngineTimes {
        let (reply, times) = oneshot::channel();
        self.send(Command::Times(reply));
        times.await.unwrap_or_default()
    }

    fn send(&self, command: Command) {
        if let Some(commands) = &self.commands {
            // A dead thread drops the reply sender with the command, which the caller sees.
            let _ = commands.send(command);
        }
    }

    fn stopped(&self) -> GenerateError {
        let failure = self
            .failure
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        GenerateError::Stopped(failure.clone().unwrap_or_else(|| "it was shut down".into()))
    }
}

impl Drop for PolicyEngine {
    fn drop(&mut self) {
        self.commands = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[async_trait]
impl Generator for PolicyEngine {
    async fn generate(&self, request: GenerateRequest) -> Result<Generated, GenerateError> {
        let (reply, generated) = oneshot::channel();
        self.send(Command::Generate(request, reply));
        generated.await.unwrap_or_else(|_| Err(self.stopped()))
    }

    fn close(&self, sequence: SequenceId) {
        self.send(Command::Close(sequence));
    }
}

/// A sequence with a slot in the KV cache.
struct Sequence {
    slot: usize,
    /// Tokens whose keys and values are in the slot.
    cached: usize,
    /// Tokens to feed before the next draw.
    pending: VecDeque<u32>,
    /// The turn under way, if any.
    turn: Option<Turn>,
    /// The prompt it began with, while others may copy it from here.
    prompt: Option<Arc<[u32]>>,
}

struct Turn {
    request: GenerateRequest,
    ids: Vec<u32>,
    log_probs: Vec<f32>,
    reply: oneshot::Sender<Result<Generated, GenerateError>>,
}

struct Engine<'a> {
    model: &'a Model,
    decoder: Decoder,
    stop_ids: Vec<u32>,
    config: EngineConfig,
    /// Ordered, so that a pass is the same whenever the same sequences are in it.
    sequences: BTreeMap<SequenceId, Sequence>,
    free_slots: Vec<usize>,
    /// Requests of new sequences that wait for a slot, oldest first.
    queue: VecDeque<(
        GenerateRequest,
        oneshot::Sender<Result<Generated, GenerateError>>,
    )>,
    /// Which sequence holds a prompt that others may copy.
    prompts: HashMap<Arc<[u32]>, SequenceId>,
    times: EngineTimes,
}

impl<'a> Engine<'a> {
    fn new(model: &'a Model, decoder: Decoder, stop_ids: Vec<u32>, config: EngineConfig) -> Self {
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
            times: EngineTimes::default(),
        }
    }

    /// Runs until the other end of `inbox` is gone.
    fn run(mut self, inbox: &Receiver<Command>) -> rlf_policy::Result<()> {
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

    fn accept(
        &mut self,
        request: GenerateRequest,
        reply: oneshot::Sender<Result<Generated, GenerateError>>,
    ) {
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

    /// For a sequence that has read nothing: copies its prompt from the sequence that holds it.
    /// False where that one is still reading, so that this one should wait.
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
            // It was refused before it read anything, and will never read.
            self.prompts.insert(prompt, id);
            return Ok(true);
        }
        // All but the last token, whose logits the draw needs.
        let shared = prompt.len() - 1;
        if let Some(sequence) = self.sequences.get_mut(&id) {
            self.decoder.copy_prefix(from, sequence.slot, shared)?;
            sequence.cached = shared;
            sequence.pending.drain(..shared);
        }
        Ok(true)
    }

    /// One forward pass over everything that has something to feed, and a draw for each sequence
    /// that has then read all it had.
    fn pass(&mut self) -> rlf_policy::Result<()> {
        let mut room = self.config.step_tokens.max(1);
        let mut fed: Vec<(SequenceId, usize, usize, Vec<u32>)> = Vec::new();
        let active: Vec<SequenceId> = self
            .sequences
            .iter()
            .filter(|(_, s)| s.turn.is_some())
            .map(|(id, _)| *id)
            .collect();
        for id in active {
            if room == 0 {
                break;
            }
            if !self.share_prompt(id)? {
                continue;
            }
            let Some(sequence) = self.sequences.get_mut(&id) else {
                continue;
            };
            let count = sequence.pending.len().min(room);
            let tokens: Vec<u32> = sequence.pending.drain(..count).collect();
            room -= count;
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
        // What each entry draws after it is read; None while a long prompt has more to come.
        let draws: Vec<Option<(Sampler, DrawKey)>> = fed
            .iter()
            .map(|(id, ..)| {
                let sequence = self.sequences.get(id).filter(|s| s.pending.is_empty())?;
                let turn = sequence.turn.as_ref()?;
                let mut key = turn.request.key;
                key.position += turn.ids.len() as u64;
                Some((turn.request.sampler, key))
            })
            .collect();
        let drawn = self
            .decoder
            .step_with(self.model, &entries, |entry, logits| {
                draws[entry]
                    .map(|(sampler, key)| sampler.sample(logits, key))
                    .transpose()
            })?;
        self.times.passes += 1;
        self.times.fed += fed
            .iter()
            .map(|(_, _, _, tokens)| tokens.len() as u64)
            .sum::<u64>();
        for ((id, _, _, tokens), drawn) in fed.iter().zip(drawn) {
            // Only now: until a pass is done, nobody may copy what it reads.
            if let Some(sequence) = self.sequences.get_mut(id) {
                sequence.cached += tokens.len();
            }
            if let Some(drawn) = drawn? {
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
        // Fed with the next pass, or with the observation that follows.
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
