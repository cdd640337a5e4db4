//! The folder of a new run. Until the new run has started, the run that it replaces can be restored.
//!
//! A new run is known to be good only when configuration, plugins, tasks and weights have been read, and tools and
//! rewards have worked once. Until then a replaced run is set aside. If the attempt fails, everything that it wrote is
//! removed.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rlf_train::run::{FolderLock, LOCK_FILE, RunError, is_run, lock};

use crate::reporter::RunReporter;

/// Marks a folder in which a run is about to start. If the attempt is killed, the next one may clear the folder.
const STARTING_FILE: &str = ".starting";

/// The folder for data inside a run's folder.
pub(crate) fn data_path(run: &Path) -> PathBuf {
    run.join("data")
}

/// The folder for files that calls leave behind, inside a run's folder.
pub(crate) fn outputs_path(run: &Path) -> PathBuf {
    run.join("outputs")
}

/// The folder in which an external engine finds the policy's weights, inside a run's folder.
pub(crate) fn engine_path(run: &Path) -> PathBuf {
    run.join("engine")
}

/// The folder for recorded answers of models, inside a run's folder.
pub(crate) fn models_path(run: &Path) -> PathBuf {
    run.join("models")
}

/// The folder of a run's control, which is a run itself.
pub(crate) fn control_path(run: &Path) -> PathBuf {
    run.join("control")
}

/// Reasons why a folder cannot hold a new run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    /// A run exists there, which is not overwritten by accident.
    #[error(
        "{} already holds a run; go on with it, replace it or name another folder",
        path.display()
    )]
    HoldsARun {
        /// The folder.
        path: PathBuf,
    },
    /// The folder has files that do not belong to a run. Such files are never touched.
    #[error("{} is not a run and not empty; name another folder", path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// The folder to replace does not hold a run.
    #[error("{} exists and is not a run, so it is not replaced; name another folder", path.display())]
    NotARun {
        /// The folder.
        path: PathBuf,
    },
    /// The folder to replace is a link.
    #[error("{} is a link; name the folder it leads to", path.display())]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// The run in the folder is in use, or its lock cannot be taken.
    #[error(transparent)]
    Lock(#[from] RunError),
    /// The lock was already handed to a run.
    #[error("the folder's lock was taken twice")]
    LockTaken,
    /// The file system refused.
    #[error("{action}: {source}")]
    Io {
        /// The attempted operation, with its paths.
        action: String,
        /// The operating system's answer.
        source: io::Error,
    },
}

impl FolderError {
    fn io(action: String) -> impl FnOnce(io::Error) -> Self {
        |source| Self::Io { action, source }
    }
}

/// The locked folder of a run that is about to start. If it is dropped without [`NewRunFolder::keep`], the folder
/// returns to its earlier state.
pub struct NewRunFolder {
    path: PathBuf,
    /// Path to which the replaced run was moved.
    aside: Option<PathBuf>,
    /// True if the folder itself was made for this run.
    made: bool,
    /// True if the run has started.
    kept: bool,
    lock: Option<FolderLock>,
    reporter: Arc<dyn RunReporter>,
}

impl NewRunFolder {
    /// Creates and locks the folder `path`. An existing run is replaced only with `overwrite`, and only if it is not in
    /// use. Files that do not belong to a run are never touched.
    pub fn create(
        path: &Path,
        overwrite: bool,
        reporter: Arc<dyn RunReporter>,
    ) -> Result<Self, FolderError> {
        let replaces = !is_abandoned(path) || is_run(&aside_path(path));
        let aside = if overwrite && path.exists() && replaces {
            Some(set_aside(path)?)
        } else {
            None
        };
        let mut folder = Self {
            path: path.to_owned(),
            aside,
            made: false,
            // Without the lock, nothing here may be removed.
            kept: true,
            lock: None,
            reporter,
        };
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(FolderError::io(format!(
                "cannot create {}",
                parent.display()
            )))?;
        }
        folder.made = match fs::create_dir(path) {
            Ok(()) => true,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => false,
            Err(source) => {
                let action = format!("cannot create {}", path.display());
                return Err(FolderError::Io { action, source });
            }
        };
        let path = path.to_owned();
        if !folder.made && is_run(&path) {
            return Err(FolderError::HoldsARun { path });
        }
        folder.lock = Some(lock(&path)?);
        if is_abandoned(&path) {
            clear(&path, Some(LOCK_FILE));
        }
        let foreign = fs::read_dir(&path)
            .map_err(FolderError::io(format!("cannot list {}", path.display())))?
            .filter_map(Result::ok)
            .any(|entry| entry.file_name() != LOCK_FILE && entry.file_name() != STARTING_FILE);
        if foreign {
            return Err(FolderError::NotEmpty { path });
        }
        let marker = path.join(STARTING_FILE);
        let failed = FolderError::io(format!("cannot write {}", marker.display()));
        fs::write(&marker, "").map_err(failed)?;
        folder.kept = false;
        Ok(folder)
    }

    /// Takes the lock of the folder, for the run that starts in it.
    pub fn take_lock(&mut self) -> Result<FolderLock, FolderError> {
        self.lock.take().ok_or(FolderError::LockTaken)
    }

    /// Keeps the folder because the run has started, and removes the replaced run.
    pub fn keep(mut self) -> Result<(), FolderError> {
        self.kept = true;
        let marker = self.path.join(STARTING_FILE);
        let failed = FolderError::io(format!("cannot remove {}", marker.display()));
        fs::remove_file(&marker).map_err(failed)?;
        match self.aside.take() {
            None => Ok(()),
            Some(aside) => fs::remove_dir_all(&aside).map_err(FolderError::io(format!(
                "cannot remove the replaced run in {}",
                aside.display()
            ))),
        }
    }
}

impl Drop for NewRunFolder {
    fn drop(&mut self) {
        if !self.kept {
            // Removes everything created since: the folder, or its contents.
            if self.made {
                let _ = fs::remove_dir_all(&self.path);
            } else {
                clear(&self.path, None);
            }
        }
        if let Some(aside) = &self.aside
            && let Err(error) = fs::rename(aside, &self.path)
        {
            self.reporter.warn(&format!(
                "the run that was there is in {}: {error}",
                aside.display()
            ));
        }
    }
}

/// True if an attempt to start a run here was killed before there was a run.
fn is_abandoned(path: &Path) -> bool {
    path.join(STARTING_FILE).is_file() && !is_run(path)
}

/// Removes what is in a folder except the file `kept`, as far as possible.
fn clear(folder: &Path, kept: Option<&str>) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| kept.is_none_or(|kept| entry.file_name() != kept)) {
        let path = entry.path();
        let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
    }
}

/// The place of a run that is being replaced.
fn aside_path(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".replaced");
    path.with_file_name(name)
}

/// Moves the run that is to be replaced out of the way.
fn set_aside(path: &Path) -> Result<PathBuf, FolderError> {
    let owned = || path.to_owned();
    if path.is_symlink() {
        return Err(FolderError::Link { path: owned() });
    }
    let aside = aside_path(path);
    let failed = FolderError::io(format!(
        "cannot set the run in {} aside as {}",
        path.display(),
        aside.display()
    ));
    // If an attempt was killed before it started, the run aside is the one that it would have replaced.
    let killed = is_run(&aside);
    if !killed && !is_run(path) {
        return Err(FolderError::NotARun { path: owned() });
    }
    let _lock = lock(path)?;
    if killed {
        fs::remove_dir_all(path).map_err(failed)?;
    } else {
        fs::rename(path, &aside).map_err(failed)?;
    }
    Ok(aside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reporter::Silent;

    fn create(path: &Path, overwrite: bool) -> Result<NewRunFolder, FolderError> {
        NewRunFolder::create(path, overwrite, Arc::new(Silent))
    }

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
        let started = create(&fresh, false).unwrap();
        begin(&fresh);
        drop(started);
        assert!(!fresh.exists());

        let path = run(folder.path());
        let started = create(&path, true).unwrap();
        begin(&path);
        drop(started);
        assert_eq!(config(&path).as_deref(), Some("old"));
        assert!(!folder.path().join("run.replaced").exists());
    }

    #[test]
    fn a_start_that_was_killed_leaves_a_folder_that_the_next_one_clears() {
        for overwrite in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("run");
            let mut killed = create(&path, false).unwrap();
            fs::create_dir(data_path(&path)).unwrap();
            drop(killed.take_lock().unwrap());
            // As after SIGKILL, nothing is cleaned up.
            std::mem::forget(killed);
            let next = create(&path, overwrite).unwrap();
            assert!(!data_path(&path).exists());
            begin(&path);
            next.keep().unwrap();
            assert_eq!(config(&path).as_deref(), Some("new"));
            assert!(!path.join(STARTING_FILE).exists());
        }
    }

    #[test]
    fn a_run_that_started_replaces_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = run(folder.path());
        let started = create(&path, true).unwrap();
        begin(&path);
        started.keep().unwrap();
        assert_eq!(config(&path).as_deref(), Some("new"));
        assert!(!folder.path().join("run.replaced").exists());
    }

    #[test]
    fn after_a_start_that_was_killed_the_run_before_it_is_still_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = run(folder.path());
        // The system releases the lock of a killed process, and cleans up nothing else.
        let mut killed = create(&path, true).unwrap();
        drop(killed.take_lock());
        std::mem::forget(killed);
        begin(&path);
        drop(create(&path, true).unwrap());
        assert_eq!(config(&path).as_deref(), Some("old"));
    }

    #[test]
    fn a_run_in_use_and_a_folder_that_is_no_run_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = run(folder.path());
        let refused = |overwrite: bool| create(&path, overwrite).err().unwrap().to_string();
        let used = lock(&path).unwrap();
        assert!(refused(true).contains("in use"));
        assert!(refused(false).contains("already holds a run"));
        assert_eq!(config(&path).as_deref(), Some("old"));
        drop(used);
        // A configuration alone does not make a run; it may be any file of a user.
        fs::remove_file(path.join("machine.json")).unwrap();
        assert!(refused(true).contains("is not a run"));
        assert!(refused(false).contains("is not a run and not empty"));
        assert_eq!(config(&path).as_deref(), Some("old"));
    }

    #[test]
    fn who_comes_second_removes_nothing_of_who_came_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let first = create(&path, false).unwrap();
        let second = create(&path, false).err().unwrap().to_string();
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
        let started = create(&path, false).unwrap();
        begin(&path);
        drop(started);
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
    }
}
