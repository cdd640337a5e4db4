//! Room for a run: until it has started, what was there before can come back.
//!
//! A new run is only known to be good once configuration, plugins, tasks and weights have been read and tools and
//! rewards have worked once. Until then an existing run that it replaces is set aside, and whatever the attempt wrote is removed if it fails.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use rlf_train::run::{LOCK_FILE, RunLock, is_run};

/// The folder of a run that is about to start, ours alone. Dropped without [`Room::keep`], everything is as it was.
#[derive(Debug)]
pub(crate) struct Room {
    path: PathBuf,
    /// Where the run lies that this one replaces.
    aside: Option<PathBuf>,
    /// Whether the folder itself was made for this run.
    made: bool,
    /// Whether the run has started.
    kept: bool,
    lock: Option<RunLock>,
}

impl Room {
    /// Makes room for a run in `path`. A run is never overwritten by accident, one in use not at all, and what is no
    /// run is never touched.
    pub(crate) fn make(path: &Path, overwrite: bool) -> anyhow::Result<Self> {
        let aside = if overwrite && path.exists() {
            Some(set_aside(path)?)
        } else {
            None
        };
        let mut room = Self {
            path: path.to_owned(),
            aside,
            made: false,
            // Until the lock is ours, nothing here is.
            kept: true,
            lock: None,
        };
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)
                .with_context(|| format!("cannot create {}", parent.display()))?;
        }
        room.made = match fs::create_dir(path) {
            Ok(()) => true,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => false,
            Err(error) => {
                return Err(error).with_context(|| format!("cannot create {}", path.display()));
            }
        };
        if !room.made && is_run(path) {
            bail!(
                "{} already holds a run; go on with it (--resume), replace it (--overwrite) or name another folder (--run DIR)",
                path.display()
            );
        }
        room.lock = Some(RunLock::take(path)?);
        let foreign = fs::read_dir(path)
            .with_context(|| format!("cannot list {}", path.display()))?
            .filter_map(Result::ok)
            .any(|entry| entry.file_name() != LOCK_FILE);
        if foreign {
            bail!(
                "{} is no run and not empty; name another folder (--run DIR)",
                path.display()
            );
        }
        room.kept = false;
        Ok(room)
    }

    /// The lock of the folder, for the run that begins in it.
    pub(crate) fn take_lock(&mut self) -> anyhow::Result<RunLock> {
        self.lock
            .take()
            .context("the folder's lock was taken twice")
    }

    /// The run has started: what it replaces is removed.
    pub(crate) fn keep(mut self) -> anyhow::Result<()> {
        self.kept = true;
        match self.aside.take() {
            None => Ok(()),
            Some(aside) => fs::remove_dir_all(&aside)
                .with_context(|| format!("cannot remove the replaced run in {}", aside.display())),
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if !self.kept {
            // What was made since: the folder, or what is in it.
            if self.made {
                let _ = fs::remove_dir_all(&self.path);
            } else if let Ok(entries) = fs::read_dir(&self.path) {
                for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
                    let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
                }
            }
        }
        if let Some(aside) = &self.aside
            && let Err(error) = fs::rename(aside, &self.path)
        {
            eprintln!(
                "the run that was there lies in {}: {error}",
                aside.display()
            );
        }
    }
}

/// Moves a run that is to be replaced out of the way.
fn set_aside(path: &Path) -> anyhow::Result<PathBuf> {
    if path.is_symlink() {
        bail!("{} is a link; name the folder it leads to", path.display());
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".replaced");
    let aside = path.with_file_name(name);
    let told = || {
        format!(
            "cannot set the run in {} aside as {}",
            path.display(),
            aside.display()
        )
    };
    // An attempt that was killed before it started: the run that it would have replaced is the one aside.
    let killed = is_run(&aside);
    if !killed && !is_run(path) {
        bail!(
            "{} exists and is no run, so it is not replaced; name another folder",
            path.display()
        );
    }
    let _lock = RunLock::take(path)?;
    if killed {
        fs::remove_dir_all(path).with_context(told)?;
    } else {
        fs::rename(path, &aside).with_context(told)?;
    }
    Ok(aside)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(folder: &Path) -> PathBuf {
        let path = folder.join("run");
        fs::create_dir(&path).unwrap();
        for file in ["config.toml", "machine.json", "plugins.json"] {
            fs::write(path.join(file), "old").unwrap();
        }
        path
    }

    fn begin(path: &Path) {
        fs::create_dir_all(path).unwrap();
        fs::write(path.join("config.toml"), "new").unwrap();
    }

    fn config(path: &Path) -> Option<String> {
        fs::read_to_string(path.join("config.toml")).ok()
    }

    #[test]
    fn a_start_that_fails_leaves_nothing_and_brings_back_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let fresh = folder.path().join("fresh");
        let room = Room::make(&fresh, false).unwrap();
        begin(&fresh);
        drop(room);
        assert!(!fresh.exists());

        let path = run(folder.path());
        let room = Room::make(&path, true).unwrap();
        begin(&path);
        drop(room);
        assert_eq!(config(&path).as_deref(), Some("old"));
        assert!(!folder.path().join("run.replaced").exists());
    }

    #[test]
    fn a_run_that_started_replaces_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = run(folder.path());
        let room = Room::make(&path, true).unwrap();
        begin(&path);
        room.keep().unwrap();
        assert_eq!(config(&path).as_deref(), Some("new"));
        assert!(!folder.path().join("run.replaced").exists());
    }

    #[test]
    fn after_a_start_that_was_killed_the_run_before_it_is_still_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = run(folder.path());
        // What the system does for a process that is killed: it takes the lock back, and nothing else.
        let mut killed = Room::make(&path, true).unwrap();
        drop(killed.take_lock());
        std::mem::forget(killed);
        begin(&path);
        drop(Room::make(&path, true).unwrap());
        assert_eq!(config(&path).as_deref(), Some("old"));
    }

    #[test]
    fn a_run_in_use_and_a_folder_that_is_no_run_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = run(folder.path());
        let refused = |overwrite: bool| Room::make(&path, overwrite).unwrap_err().to_string();
        let used = RunLock::take(&path).unwrap();
        assert!(refused(true).contains("in use"));
        assert!(refused(false).contains("already holds a run"));
        assert_eq!(config(&path).as_deref(), Some("old"));
        drop(used);
        // A configuration alone is no run: it may be anybody's.
        fs::remove_file(path.join("machine.json")).unwrap();
        assert!(refused(true).contains("is no run"));
        assert!(refused(false).contains("is no run and not empty"));
        assert_eq!(config(&path).as_deref(), Some("old"));
    }

    #[test]
    fn who_comes_second_removes_nothing_of_who_came_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let first = Room::make(&path, false).unwrap();
        let second = Room::make(&path, false).unwrap_err().to_string();
        assert!(second.contains("in use"), "{second}");
        assert!(path.is_dir());
        begin(&path);
        first.keep().unwrap();
        assert_eq!(config(&path).as_deref(), Some("new"));
    }

    #[test]
    fn an_empty_folder_is_used_and_is_empty_again_after_a_start_that_fails() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        fs::create_dir(&path).unwrap();
        let room = Room::make(&path, false).unwrap();
        begin(&path);
        drop(room);
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
    }
}
