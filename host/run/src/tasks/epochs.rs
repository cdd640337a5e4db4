//! The order of a data set in each epoch.

use std::sync::{Arc, Mutex, PoisonError};

use rlf_policy::{Key, Purpose};

/// The order of `size` items in each epoch; every epoch has its own.
pub(super) struct Epochs {
    key: Key,
    size: usize,
    /// The last epoch that was asked for, and its order.
    last: Mutex<Option<(u64, Arc<[usize]>)>>,
}

impl Epochs {
    /// Makes orders that depend only on the seed and on `name`.
    pub(super) fn new(seed: u64, name: &'static str, size: usize) -> Self {
        Self {
            key: Key::new(seed, Purpose::Order).named(name),
            size,
            last: Mutex::new(None),
        }
    }

    /// The index of the `number`-th item over all epochs. `size` must not be 0.
    pub(super) fn index(&self, number: u64) -> usize {
        let size = self.size as u64;
        self.order(number / size)[(number % size) as usize]
    }

    fn order(&self, epoch: u64) -> Arc<[usize]> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((known, order)) if *known == epoch => order.clone(),
            _ => {
                let mut order: Vec<usize> = (0..self.size).collect();
                self.key.at(epoch).shuffle(&mut order);
                let order: Arc<[usize]> = order.into();
                *last = Some((epoch, order.clone()));
                order
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_epoch_is_a_shuffle_of_its_own_however_it_is_asked_for() {
        let shuffled = |epoch| {
            let mut order: Vec<usize> = (0..7).collect();
            let key = Key::new(5, Purpose::Order).named("tasks").at(epoch);
            key.shuffle(&mut order);
            order
        };
        let wanted: Vec<usize> = (0..3).flat_map(shuffled).collect();
        assert_ne!(wanted[..7], wanted[7..14]);
        let epochs = Epochs::new(5, "tasks", 7);
        let forwards: Vec<usize> = (0..21).map(|number| epochs.index(number)).collect();
        assert_eq!(forwards, wanted);
        let backwards: Vec<usize> = (0..21).rev().map(|number| epochs.index(number)).collect();
        assert!(backwards.iter().rev().eq(&wanted));
    }
}
