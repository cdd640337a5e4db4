//! The token sequences of a trajectory while it is being made. They only grow; a new one begins when the next text is
//! not a continuation.

use crate::trajectory::{ModelSegment, Segment, TrainingSequence};

/// The sequences so far. The generator reads the last one.
#[derive(Debug)]
pub(crate) struct Sequences {
    all: Vec<TrainingSequence>,
    /// Number of ids in the last sequence. Text from an endpoint counts as if it were tokenised.
    length: usize,
    /// Text of the last sequence, kept only to compare it with a new rendering.
    text: Option<String>,
    /// Ids that the generator has not read yet.
    pending: Vec<u32>,
}

impl Sequences {
    /// Creates the list without a sequence. Call [`Self::begin`] first.
    pub(crate) fn new(keeps_text: bool) -> Self {
        Self {
            all: Vec::new(),
            length: 0,
            text: keeps_text.then(String::new),
            pending: Vec::new(),
        }
    }

    /// Begins a sequence with these ids, whose text is `text`.
    pub(crate) fn begin(&mut self, ids: Vec<u32>, text: &str) {
        self.length = ids.len();
        self.pending.clear();
        if let Some(kept) = &mut self.text {
            text.clone_into(kept);
        }
        self.all.push(TrainingSequence::default());
        self.current().push(Segment::Prompt(ids));
    }

    /// Adds a turn of the model with `tokens` tokens, whose text is `text`. The pending ids count as read.
    pub(crate) fn push_model(&mut self, segment: ModelSegment, tokens: usize, text: &str) {
        self.pending.clear();
        self.length += tokens;
        if let Some(kept) = &mut self.text {
            kept.push_str(text);
        }
        self.current().push(Segment::Model(segment));
    }

    /// Adds an observation between two turns of the model.
    pub(crate) fn push_observation(&mut self, ids: Vec<u32>, text: &str) {
        self.length += ids.len();
        self.pending.extend_from_slice(&ids);
        if let Some(kept) = &mut self.text {
            kept.push_str(text);
        }
        self.current().push(Segment::Observation(ids));
    }

    /// Number of ids in the last sequence.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Text of the last sequence, if it is kept.
    pub(crate) fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Takes the ids that the generator has not read yet.
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
                    | ModelSegment::Demonstrated { ids: new, .. },
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
