//! What is left when a call is over, as plain data: how it ended, what it printed and logged, its files.
//!
//! - `ending`: how a call ended without a value, and the limit that ended it
//! - `output`: what was printed, head and tail
//! - `logs`: log lines
//! - `files`: kept files
//! - `text`: guest text made safe to show

mod ending;
mod files;
mod logs;
mod output;
mod text;

pub use ending::{Clock, Ending, LimitReached, Stopped};
pub use files::FilesReport;
pub use logs::{LogLevel, LogLine, Logs};
pub use output::{Captured, Output, Stream, Tee};
pub use text::safe_text;
pub(crate) use text::shortened;
