//! Random walks: the comparison for topology-aware sampling.

use super::walker::Walker;

/// Samples the tools of a chain: from any tool to any tool that depends on it and was not taken, and so on. If there is
/// none, the walk goes on at any tool of the same server.
pub(super) fn walk(mut walker: Walker<'_>) -> Vec<usize> {
    let mut tool = walker.start();
    while !walker.is_complete() {
        walker.chain.push(tool);
        let successors = walker.successors(tool);
        tool = match walker.draws.pick(&successors) {
            Some(next) => next,
            None => walker.neighbour(tool),
        };
    }
    walker.chain
}
