//! The pages of a key-value cache: which of them are free, and which sequence holds which. It knows no device.
//!
//! A page has the keys and values of [`PAGE_TOKENS`] consecutive positions, all layers. The table of a sequence lists
//! its pages in the order of positions. Sequences that begin alike share pages, and every page counts its holders. A
//! sequence writes only pages that it alone holds: before it continues a shared page, it gets a copy.

use std::collections::HashMap;

/// Tokens of a page of the key-value cache.
///
/// A page has two of the CPU's key tiles, because the kernel of attention reads two at once. A sequence leaves half a
/// page empty on average, a twelfth of its memory if it has 200 tokens. Larger pages would leave more empty and share
/// less of a prompt; smaller ones would need a lookup more often than every 32 positions.
pub const PAGE_TOKENS: usize = 32;

/// Number of pages that so many tokens take.
pub(crate) fn pages_of(tokens: usize) -> usize {
    tokens.div_ceil(PAGE_TOKENS)
}

/// The pages of a sequence.
#[derive(Debug, Default)]
struct Table {
    pages: Vec<u32>,
    /// Positions filled.
    len: usize,
}

/// A page to copy to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageCopy {
    pub(super) from: usize,
    pub(super) to: usize,
}

/// The pages of a cache.
#[derive(Debug)]
pub(super) struct Pages {
    tables: HashMap<u64, Table>,
    /// Number of sequences that hold each page.
    holders: Vec<u32>,
    /// Free pages; the last one is taken next.
    free: Vec<u32>,
}

impl Pages {
    /// So many pages, all of them free.
    pub(super) fn new(count: usize) -> Self {
        Self {
            tables: HashMap::new(),
            holders: vec![0; count],
            free: (0..count as u32).rev().collect(),
        }
    }

    /// Number of free pages.
    pub(super) fn free(&self) -> usize {
        self.free.len()
    }

    /// Number of positions that a sequence has filled; 0 if it is unknown.
    pub(super) fn len(&self, sequence: u64) -> usize {
        self.tables.get(&sequence).map_or(0, |table| table.len)
    }

    /// The pages of a sequence, in the order of positions.
    pub(super) fn table(&self, sequence: u64) -> &[u32] {
        self.tables
            .get(&sequence)
            .map_or(&[], |table| &table.pages[..])
    }

    /// Number of pages that a sequence takes to write the positions `start..end`: new ones, and copies of shared ones.
    pub(super) fn wanted(&self, sequence: u64, start: usize, end: usize) -> usize {
        let (first, count) = (start / PAGE_TOKENS, pages_of(end));
        let held = self.table(sequence).iter().take(count).skip(first);
        let own = held.filter(|page| self.holders[**page as usize] == 1);
        count - first - own.count()
    }

    /// Number of pages that several sequences take to write the positions `start..end` of each. It is less than the sum
    /// of [`Self::wanted`] if all holders of a page write it: the last one keeps it.
    pub(super) fn wanted_together(
        &self,
        writes: impl Iterator<Item = (u64, usize, usize)>,
    ) -> usize {
        let mut sum = 0;
        let mut writers: HashMap<u32, u32> = HashMap::new();
        for (sequence, start, end) in writes {
            sum += self.wanted(sequence, start, end);
            let written = self.table(sequence).iter().take(pages_of(end));
            for page in written.skip(start / PAGE_TOKENS) {
                if self.holders[*page as usize] > 1 {
                    *writers.entry(*page).or_default() += 1;
                }
            }
        }
        let kept = writers
            .iter()
            .filter(|(page, count)| self.holders[**page as usize] == **count);
        sum - kept.count()
    }

    /// Gives a sequence pages that it alone holds for its positions `start..end`. The sequence forgets what it held
    /// from `start` on. Returns the page to copy if a shared page has positions before `start`.
    ///
    /// Callers make sure that enough pages are free: [`Self::wanted_together`].
    pub(super) fn prepare(&mut self, sequence: u64, start: usize, end: usize) -> Option<PageCopy> {
        let (first, count) = (start / PAGE_TOKENS, pages_of(end));
        let Self {
            tables,
            holders,
            free,
        } = self;
        let table = tables.entry(sequence).or_default();
        table.len = start;
        for page in table.pages.drain(count.min(table.pages.len())..) {
            release(page, holders, free);
        }
        let mut copy = None;
        for place in first..count {
            let held = table.pages.get(place).copied();
            if held.is_some_and(|page| holders[page as usize] == 1) {
                continue;
            }
            let page = free.pop().expect("callers made sure that it is free");
            holders[page as usize] = 1;
            let Some(shared) = held else {
                table.pages.push(page);
                continue;
            };
            holders[shared as usize] -= 1;
            table.pages[place] = page;
            // Only the first page can have positions that stay.
            if place * PAGE_TOKENS < start {
                copy = Some(PageCopy {
                    from: shared as usize,
                    to: page as usize,
                });
            }
        }
        copy
    }

    /// Records that `len` positions of a sequence are filled.
    pub(super) fn fill(&mut self, sequence: u64, len: usize) {
        if let Some(table) = self.tables.get_mut(&sequence) {
            table.len = len;
        }
    }

    /// Lets `to` share the first `len` positions of `from`. It forgets what it held before.
    pub(super) fn share(&mut self, from: u64, to: u64, len: usize) {
        if from == to {
            return;
        }
        self.close(to);
        let pages = self.table(from)[..pages_of(len)].to_vec();
        for page in &pages {
            self.holders[*page as usize] += 1;
        }
        self.tables.insert(to, Table { pages, len });
    }

    /// Forgets a sequence. Its pages are free if no other sequence holds them.
    pub(super) fn close(&mut self, sequence: u64) {
        if let Some(table) = self.tables.remove(&sequence) {
            for page in table.pages {
                release(page, &mut self.holders, &mut self.free);
            }
        }
    }
}

/// Takes a page from one of its holders.
fn release(page: u32, holders: &mut [u32], free: &mut Vec<u32>) {
    let holders = &mut holders[page as usize];
    *holders -= 1;
    if *holders == 0 {
        free.push(page);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fills the positions of a sequence from `start` on, as a step does.
    fn write(pages: &mut Pages, sequence: u64, start: usize, end: usize) -> Option<PageCopy> {
        let (wanted, free) = (pages.wanted(sequence, start, end), pages.free());
        assert!(wanted <= free, "{wanted} pages of {free}");
        let copy = pages.prepare(sequence, start, end);
        assert_eq!(pages.len(sequence), start);
        pages.fill(sequence, end);
        assert_eq!(pages.wanted(sequence, start, end), 0);
        copy
    }

    #[test]
    fn a_sequence_takes_a_page_for_each_32_positions_and_gives_them_back() {
        let mut pages = Pages::new(4);
        assert_eq!(write(&mut pages, 7, 0, 32), None);
        assert_eq!((pages.table(7), pages.free()), (&[0][..], 3));
        assert_eq!(pages.wanted(7, 32, 33), 1);
        assert_eq!(write(&mut pages, 7, 32, 65), None);
        assert_eq!((pages.table(7), pages.free()), (&[0, 1, 2][..], 1));
        // It goes back: what it does not need any more is free.
        assert_eq!(write(&mut pages, 7, 40, 41), None);
        assert_eq!(
            (pages.table(7), pages.len(7), pages.free()),
            (&[0, 1][..], 41, 2)
        );
        pages.close(7);
        pages.close(8);
        assert_eq!((pages.len(7), pages.free()), (0, 4));
    }

    #[test]
    fn whole_pages_are_shared_and_a_partly_filled_one_is_copied_by_whoever_continues_it_first() {
        let mut pages = Pages::new(6);
        write(&mut pages, 1, 0, 70);
        pages.share(1, 2, 69);
        pages.share(1, 3, 69);
        assert_eq!((pages.table(2), pages.len(2)), (pages.table(1), 69));
        assert_eq!(pages.free(), 3);
        let writes = [(1, 70, 71), (2, 69, 70), (3, 69, 70)];
        assert!(
            writes
                .iter()
                .all(|(sequence, start, end)| pages.wanted(*sequence, *start, *end) == 1)
        );
        assert_eq!(pages.wanted_together(writes.into_iter()), 2);
        assert_eq!(pages.wanted_together(writes.into_iter().take(2)), 2);
        // Each copies the third page but the last, which is then alone with it.
        for (sequence, start, copy) in [
            (1, 70, Some(PageCopy { from: 2, to: 3 })),
            (2, 69, Some(PageCopy { from: 2, to: 4 })),
            (3, 69, None),
        ] {
            assert_eq!(write(&mut pages, sequence, start, start + 1), copy);
        }
        assert_eq!(
            [1, 2, 3].map(|sequence| pages.table(sequence)),
            [&[0, 1, 3][..], &[0, 1, 4], &[0, 1, 2]]
        );
        pages.close(1);
        assert_eq!(pages.free(), 2);
        pages.close(2);
        pages.close(3);
        assert_eq!(pages.free(), 6);
    }

    #[test]
    fn a_shared_page_is_replaced_without_a_copy_if_nothing_in_it_stays() {
        let mut pages = Pages::new(4);
        write(&mut pages, 1, 0, 40);
        pages.share(1, 2, 40);
        assert_eq!(pages.wanted(2, 32, 33), 1);
        assert_eq!(write(&mut pages, 2, 32, 33), None);
        assert_eq!(pages.table(2), [0, 2]);
        // And with the first one, both.
        pages.share(1, 3, 40);
        assert_eq!(pages.wanted(3, 0, 33), 2);
        pages.close(2);
        assert_eq!(write(&mut pages, 3, 0, 33), None);
        assert!(pages.table(3).iter().all(|page| *page > 1));
        assert_eq!(pages.table(1), [0, 1]);
    }

    #[test]
    fn a_sequence_that_shares_gives_up_what_it_held() {
        let mut pages = Pages::new(4);
        write(&mut pages, 1, 0, 10);
        write(&mut pages, 2, 0, 80);
        pages.share(1, 1, 5);
        assert_eq!((pages.len(1), pages.free()), (10, 0));
        pages.share(1, 2, 5);
        assert_eq!((pages.table(2), pages.len(2)), (&[0][..], 5));
        assert_eq!(pages.free(), 3);
    }
}
