//! The token sequences of a trajectory while it is being made: they only grow, and a new one begins
//! where the next would not be a continuation.

use crate::trajectory::{ModelSegment, Segment, TrainingSequence};

/// The sequences so far. The last one is what the generator reads.
#[derive(Debug)]
pub(crate) struct Sequences {
    all: Vec<TrainingSequence>,
    /// Ids in the last sequence; text of an endpoint is counted as if it were tokenised.
    length: usize,
    /// What the last sequence says; kept where it is compared with a new rendering.
    text: Option<String>,
    /// Ids that the generator has not read yet.
    pending: Vec<u32>,
}

impl Sequences {
    /// None yet: [`Self::begin`] is the first thing to do.
    pub(crate) fn new(keeps_text: bool) -> Self {
        Self {
            all: Vec::new(),
            length: 0,
            text: keeps_text.then(String::new),
            pending: Vec::new(),
        }
    }

    /// A sequence begins with these ids, which say `text`.
    pub(crate) fn begin(&mut self, ids: Vec<u32>, text: &str) {
        self.length = ids.len();
        self.pending.clear();
        if let Some(kept) = &mut self.text {
            text.clone_into(kept);
        }
        self.all.push(TrainingSequence::default());
        self.current().push(Segment::Prompt(ids));
    }

    /// The model spoke: `tokens` of them, which say `text`. What was pending has been read.
    pub(crate) fn push_model(&mut self, segment: ModelSegment, tokens: usize, text: &str) {
        self.pending.clear();
        self.length += tokens;
        if let Some(kept) = &mut self.text {
            kept.push_str(text);
        }
        self.current().push(Segment::Model(segment));
    }

    /// Something came between two turns of the model.
    pub(crate) fn push_observation(&mut self, ids: Vec<u32>, text: &str) {
        self.length += ids.len();
        self.pending.extend_from_slice(&ids);
        if let Some(kept) = &mut self.text {
            kept.push_str(text);
        }
        self.current().push(Segment::Observation(ids));
    }

    /// Ids in the last sequence.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// What the last sequence says, where it is kept.
    pub(crate) fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// What the generator has not read yet, which it now does.
    pub(crate) fn take_pending(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.pending)
    }

    /// All ids of the last sequence.
    pub(crate) fn ids(&self) -> Vec<u32> {
        let mut ids = Vec::with_capacity(self.length);
        for segment in self.all.last().map_or(&[][..], TrainingSequence::segments) {
            match segment {
                Segment::Prompt(new)
                | Segment::Observation(new)
                | Segment::Model(
                    ModelSegment::Sampled { ids: new, .. }
                    | ModelSegment::Demonstrated { ids: new },
                ) => ids.extend_from_slice(new),
                Segment::Model(ModelSegment::Text(_)) => {}
            }
        }
        ids
    }

    pub(crate) fn into_all(self) -> Vec<TrainingSequence> {
        self.all
    }

    fn current(&mut self) -> &mut TrainingSequence {
        self.all
            .last_mut()
            .expect("an episode begins its first sequence when it starts")
    }
}
