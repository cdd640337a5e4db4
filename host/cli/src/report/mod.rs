//! One self-contained HTML page about a run: curves, configuration, how calls ended, and a sample of trajectories. The
//! page loads nothing from elsewhere, and all text from a model or a tool is escaped.

mod chart;
mod page;

pub(crate) use page::html;
