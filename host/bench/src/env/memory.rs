//! Measures the private memory of live sessions, and how many of them fit on a machine.

use std::time::{Duration, Instant};

use anyhow::Context;

use super::process::Processes;
use super::rounds::{Operation, Player, Way};

/// Numbers of live sessions.
const LIVE: [usize; 4] = [10, 100, 1_000, 10_000];
/// Sessions opened before memory is first measured.
pub(super) const FIRST: usize = 8;
/// Wait before measuring, because the allocator returns memory with a delay.
const SETTLING: Duration = Duration::from_secs(1);
/// Maximum number of processes that are started. Larger numbers are extrapolated.
const MAX_PROCESSES: usize = 100;
/// Memory mappings left for everything else in this process.
const SPARE_MAPPINGS: usize = 1_500;
/// Memory left for everything else on the machine.
const SPARE_BYTES: u64 = 1 << 30;
/// Number of sessions between two checks of free memory.
const LOOKED_EVERY: usize = 100;
/// Maximum time for one row.
const MAX_ROW_TIME: Duration = Duration::from_mins(5);

/// Memory of one process or of several, in bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Memory {
    /// Resident memory. Pages that several mappings share count once for each of them.
    resident: u64,
    /// Resident memory with shared pages divided among their users, if the kernel reports it.
    proportional: Option<u64>,
    /// Anonymous memory: private, and not backed by a file.
    own: u64,
    /// The kernel's page tables.
    tables: u64,
}

impl Memory {
    /// Reads the memory of a process by its id, or of this process (`self`).
    fn from_process(process: &str) -> anyhow::Result<Self> {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/{process}/{name}"));
        let status = read("status").context("the kernel does not say what memory is used")?;
        let own = bytes(&status, "RssAnon:")
            .context("the kernel does not say what memory is private (RssAnon)")?;
        Ok(Self {
            resident: bytes(&status, "VmRSS:").unwrap_or_default(),
            proportional: read("smaps_rollup")
                .ok()
                .and_then(|text| bytes(&text, "Pss:")),
            own,
            tables: bytes(&status, "VmPTE:").unwrap_or_default(),
        })
    }

    fn since(self, before: Self) -> Self {
        let proportional = self.proportional.zip(before.proportional);
        Self {
            resident: self.resident.saturating_sub(before.resident),
            proportional: proportional.map(|(now, before)| now.saturating_sub(before)),
            own: self.own.saturating_sub(before.own),
            tables: self.tables.saturating_sub(before.tables),
        }
    }

    fn and(self, other: Self) -> Self {
        let proportional = self.proportional.zip(other.proportional);
        Self {
            resident: self.resident + other.resident,
            proportional: proportional.map(|(one, other)| one + other),
            own: self.own + other.own,
            tables: self.tables + other.tables,
        }
    }
}

/// Largest number of live sessions that was reached, and their memory.
pub(super) struct MostSessions {
    pub(super) name: String,
    pub(super) live: usize,
    /// Private memory and page tables, per session.
    pub(super) own_bytes: u64,
}

/// Prints the meaning of the columns.
pub(super) fn heading() {
    println!(
        "live sessions that have each made the scenario's calls: memory of each beyond the shared image, and of all"
    );
    println!(
        "  {:<34}{:>8}{:>10}{:>11}{:>14}{:>14}{:>10}",
        "", "live", "own KiB", "tables KiB", "proport. KiB", "resident KiB", "all MiB"
    );
}

/// Prints a row, and returns private memory and page tables per session.
fn row(name: &str, live: usize, all: Memory, remark: &str) -> u64 {
    let each = |bytes: u64| bytes as f64 / 1024.0 / live.max(1) as f64;
    let proportional = all
        .proportional
        .map_or_else(|| "–".to_owned(), |bytes| format!("{:.0}", each(bytes)));
    println!(
        "  {name:<34}{live:>8}{:>10.0}{:>11.1}{proportional:>14}{:>14.0}{:>10.0}{remark}",
        each(all.own),
        each(all.tables),
        each(all.resident),
        (all.own + all.tables) as f64 / f64::from(1 << 20),
    );
    (all.own + all.tables) / live.max(1) as u64
}

/// The numbers of sessions to measure, up to `most`.
fn numbers(most: usize) -> Vec<usize> {
    let smaller = LIVE.into_iter().filter(|number| *number < most);
    smaller.chain([most]).collect()
}

/// Measures up to `most` sessions in this process. Some other sessions are opened before the first measurement, so that
/// shared memory exists by then and memory used for loading is released.
pub(super) async fn sessions(
    name: &str,
    way: &dyn Way,
    most: usize,
) -> anyhow::Result<MostSessions> {
    let mut first = Vec::new();
    for _ in 0..FIRST {
        first.push(played(way).await?);
    }
    tokio::time::sleep(SETTLING).await;
    let before = Memory::from_process("self")?;
    let mut reached = MostSessions {
        name: name.to_owned(),
        live: 0,
        own_bytes: 0,
    };
    let mut live = Vec::new();
    for number in numbers(most) {
        let began = Instant::now();
        let mut stopped = None;
        while live.len() < number && stopped.is_none() {
            if live.len() % LOOKED_EVERY == 0 {
                stopped = no_room(began);
            }
            if stopped.is_none() {
                match played(way).await {
                    Ok(player) => live.push(player),
                    Err(error) => stopped = Some(format!("{error:#}")),
                }
            }
        }
        let all = Memory::from_process("self")?.since(before);
        reached.own_bytes = row(name, live.len(), all, "");
        reached.live = live.len();
        if let Some(why) = stopped {
            println!("  {name} stopped at {} live: {why}", live.len());
            break;
        }
    }
    Ok(reached)
}

async fn played(way: &dyn Way) -> anyhow::Result<Box<dyn Player>> {
    let mut player = way.open().await?;
    player.turn(Operation::Call).await?;
    Ok(player)
}

/// Measures one process for each session. Numbers beyond [`MAX_PROCESSES`] are extrapolated.
pub(super) fn processes(name: &str, processes: &Processes, most: usize) -> anyhow::Result<()> {
    let mut servers = Vec::new();
    let mut measured = (0, Memory::default());
    'numbers: for number in numbers(most.min(MAX_PROCESSES)) {
        let began = Instant::now();
        while servers.len() < number {
            if let Some(why) = no_room(began) {
                println!("  {name} stopped at {} live: {why}", servers.len());
                break 'numbers;
            }
            let mut server = processes.start()?;
            server.play()?;
            servers.push(server);
        }
        let mut all = Memory {
            proportional: Some(0),
            ..Memory::default()
        };
        for server in &servers {
            all = all.and(Memory::from_process(&server.process().to_string())?);
        }
        row(name, number, all, "");
        measured = (number, all);
    }
    let (number, all) = measured;
    let more = numbers(most).into_iter().filter(|more| *more > number);
    for more in more.filter(|_| number > 0) {
        let times = |bytes: u64| bytes / number as u64 * more as u64;
        let all = Memory {
            resident: times(all.resident),
            proportional: all.proportional.map(times),
            own: times(all.own),
            tables: times(all.tables),
        };
        let remark = format!("  not measured: extrapolated from {number}");
        row(name, more, all, &remark);
    }
    Ok(())
}

/// The reason why no more should be opened, if there is one.
fn no_room(began: Instant) -> Option<String> {
    if began.elapsed() > MAX_ROW_TIME {
        return Some(format!("it took longer than {} s", MAX_ROW_TIME.as_secs()));
    }
    let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
    let available = bytes(&read("/proc/meminfo"), "MemAvailable:");
    if available.is_some_and(|available| available < SPARE_BYTES) {
        return Some("the machine has less than 1 GiB of memory left".to_owned());
    }
    let most: Option<usize> = read("/proc/sys/vm/max_map_count").trim().parse().ok();
    let mappings = read("/proc/self/maps").lines().count();
    let most = most.filter(|most| mappings + SPARE_MAPPINGS > *most)?;
    Some(format!(
        "{mappings} mappings, and the kernel allows {most} (`sysctl vm.max_map_count`)"
    ))
}

/// Reads a line of a file of the kernel, whose unit is kB, and returns bytes.
fn bytes(text: &str, line: &str) -> Option<u64> {
    let line = text.lines().find_map(|found| found.strip_prefix(line))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_number_asked_for_is_the_last_one_measured() {
        assert_eq!(numbers(10_000), [10, 100, 1_000, 10_000]);
        assert_eq!(numbers(250), [10, 100, 250]);
        assert_eq!(numbers(5), [5]);
    }

    #[test]
    fn the_kernel_counts_in_kibibytes() {
        assert_eq!(bytes("Rss:  8 kB\nPss:   2 kB\n", "Pss:"), Some(2048));
        assert_eq!(bytes("Rss:  8 kB\n", "Pss:"), None);
        assert_eq!(bytes("Pss: many kB\n", "Pss:"), None);
    }
}
