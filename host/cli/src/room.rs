//! Room for a run: until it has started, what was there before can come back.
//!
//! A new run is only known to be good once configuration, plugins, tasks and weights have been read. Until then an
//! existing run that it replaces is set aside, and whatever the attempt wrote is removed if it fails.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// The folder of a run that is about to start. Dropped without [`Room::keep`], everything is as it was.
#[derive(Debug)]
pub(crate) struct Room {
    path: PathBuf,
    /// Where the run lies that this one replaces.
    aside: Option<PathBuf>,
    /// Whether there was nothing here.
    fresh: bool,
}

impl Room {
    /// Makes room for a run in `path`. A run is never overwritten by accident, one in use not at all, and what is no
    /// run is never removed.
    pub(crate) fn make(path: &Path, overwrite: bool) -> anyhow::Result<Self> {
        let mut room = Self {
            path: path.to_owned(),
            aside: None,
            fresh: !path.exists(),
        };
        if room.fresh {
            return Ok(room);
        }
        let is_run = path.join("config.toml").exists();
        if !overwrite {
            if is_run {
                bail!(
                    "{} already holds a run; go on with it (--resume), replace it (--overwrite) or name another folder (--run DIR)",
                    path.display()
                );
            }
            return Ok(room);
        }
        if !is_run {
            bail!(
                "{} exists and is no run, so it is not replaced; name another folder",
                path.display()
            );
        }
        let _lock = free(path)?;
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
        if aside.exists() {
            // An attempt that was killed before it started: the run that it would have replaced is the one aside.
            fs::remove_dir_all(path).with_context(told)?;
        } else {
            fs::rename(path, &aside).with_context(told)?;
        }
        room.aside = Some(aside);
        Ok(room)
    }

    /// The run has started: what it replaces is removed.
    pub(crate) fn keep(mut self) -> anyhow::Result<()> {
        self.fresh = false;
        match self.aside.take() {
            None => Ok(()),
            Some(aside) => fs::remove_dir_all(&aside)
                .with_context(|| format!("cannot remove the replaced run in {}", aside.display())),
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if self.fresh || self.aside.is_some() {
            let _ = fs::remove_dir_all(&self.path);
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

/// The lock of a run that no process uses.
fn free(path: &Path) -> anyhow::Result<Option<File>> {
    let Ok(lock) = File::open(path.join(".lock")) else {
        return Ok(None);
    };
    match lock.try_lock() {
        Ok(()) => Ok(Some(lock)),
        Err(TryLockError::WouldBlock) => bail!(
            "{} is in use by another process; wait for it or stop it",
            path.display()
        ),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock {}", path.display()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(folder: &Path) -> PathBuf {
        let path = folder.join("run");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("config.toml"), "old").unwrap();
        fs::write(path.join(".lock"), "").unwrap();
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
        std::mem::forget(Room::make(&path, true).unwrap());
        begin(&path);
        drop(Room::make(&path, true).unwrap());
        assert_eq!(config(&path).as_deref(), Some("old"));
    }

    #[test]
    fn a_run_in_use_and_a_folder_that_is_no_run_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = run(folder.path());
        let used = File::open(path.join(".lock")).unwrap();
        used.lock().unwrap();
        let error = Room::make(&path, true).unwrap_err().to_string();
        assert!(error.contains("in use"), "{error}");
        assert_eq!(config(&path).as_deref(), Some("old"));
        drop(used);
        fs::remove_file(path.join("config.toml")).unwrap();
        let error = Room::make(&path, true).unwrap_err().to_string();
        assert!(error.contains("is no run"), "{error}");
    }
}
