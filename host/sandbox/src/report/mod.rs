//! Results of a call besides its value, as plain data: its ending, output, log lines and files.
//!
//! - `ending`: why a call returned no value, and the limit that ended it
//! - `output`: printed bytes, head and tail
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
