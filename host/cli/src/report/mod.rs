//! One self-contained HTML page about a run: curves, configuration, how calls ended, and a sample
//! of trajectories to read. It loads nothing from anywhere, and everything in it that came from a
//! model or a tool is escaped.

mod chart;
mod page;

pub(crate) use page::html;
