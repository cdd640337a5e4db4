//! The cost of loading an environment in Python: for the first time, after an edit, and from the cache.

use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::Context;

use super::Options;
use super::sandboxed::MeasuredEnvironment;

/// Ticks of the processor time in `/proc`, a second. Linux shows no other value to programs.
const TICKS_PER_SECOND: f64 = 100.0;

/// Loads the environment in `file` with an empty cache, edited, and again. Prints the time of each load, and how much the
/// cache grew.
pub(super) fn loading(
    options: &Options<'_>,
    folder: &Path,
    file: &Path,
    server: &str,
) -> anyhow::Result<()> {
    let cache = folder.join("loading");
    let edited = folder.join("edited");
    fs::create_dir(&edited)?;
    let edited = edited.join(file.file_name().context("the environment has no name")?);
    let source = fs::read_to_string(file)?;
    fs::write(&edited, format!("{source}\n# edited\n"))?;
    println!("loading {server} in Python");
    println!(
        "  {:<40}{:>9}{:>17}{:>18}",
        "", "seconds", "processor time", "cache grows by"
    );
    for (title, file) in [
        ("with an empty cache", file),
        ("after an edit of the file", &edited),
        ("the edited file from the cache", &edited),
    ] {
        let environment = MeasuredEnvironment::python(options, &cache, file, server);
        let (bytes, processor, began) =
            (folder_bytes(&cache), processor_seconds()?, Instant::now());
        environment.environments(8)?;
        println!(
            "  {title:<40}{:>9.2}{:>15.2} s{:>14.1} MiB",
            began.elapsed().as_secs_f64(),
            processor_seconds()? - processor,
            (folder_bytes(&cache) - bytes) / f64::from(1 << 20),
        );
    }
    println!();
    Ok(())
}

/// Processor time of this process and of the children that it waited for, in seconds.
fn processor_seconds() -> anyhow::Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The name of the program, in brackets, may hold spaces.
    let (_, fields) = stat
        .rsplit_once(')')
        .context("/proc/self/stat is unusual")?;
    // See proc_pid_stat(5): utime, stime, cutime and cstime, counted from the field after the name.
    let times = fields.split_whitespace().skip(11).take(4);
    let ticks: f64 = times.filter_map(|field| field.parse::<f64>().ok()).sum();
    Ok(ticks / TICKS_PER_SECOND)
}

/// Total size of the files of a folder; 0 if there is none.
fn folder_bytes(folder: &Path) -> f64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.filter_map(|entry| Some(entry.metadata().ok()?.len()));
    sizes.sum::<u64>() as f64
}
