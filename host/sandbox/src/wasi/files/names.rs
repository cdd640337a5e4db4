//! Names in the tree: finding, making, removing and moving them, by the rules of POSIX for a file system without links.

use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::path::{Opening, Path};
use super::tree::{Content, Inode, Instant, ROOT, Tree};

/// Place that a path leads to.
struct Place<'a> {
    directory: Inode,
    /// `.` and `..` are places, but not names that can be created or removed.
    name: Option<&'a str>,
    found: Option<Inode>,
    slash: bool,
}

impl Tree {
    /// Walks from `base`. Every name on the path must exist and name a directory, and no `..` leads above `base`: a
    /// handle gives access only to its own directory.
    fn place<'a>(&self, base: Inode, path: &'a str) -> Result<Place<'a>, ErrorCode> {
        let path = Path::parse(path)?;
        let mut way = vec![base];
        let here = |way: &[Inode]| way.last().copied().ok_or(ErrorCode::NotPermitted);
        for name in path.before() {
            self.step(&mut way, name)?.ok_or(ErrorCode::NoEntry)?;
        }
        let directory = here(&way)?;
        let found = self.step(&mut way, path.last)?;
        Ok(Place {
            directory,
            name: (!matches!(path.last, "." | "..")).then_some(path.last),
            found,
            slash: path.slash,
        })
    }

    /// Follows one name, if it exists.
    fn step(&self, way: &mut Vec<Inode>, name: &str) -> Result<Option<Inode>, ErrorCode> {
        let here = *way.last().ok_or(ErrorCode::NotPermitted)?;
        let names = self.names(here)?;
        match name {
            "." => return Ok(Some(here)),
            ".." => {
                way.pop();
                return match way.last() {
                    Some(above) => Ok(Some(*above)),
                    None => Err(ErrorCode::NotPermitted),
                };
            }
            _ => {}
        }
        let found = names.get(name).copied();
        way.extend(found);
        Ok(found)
    }

    /// The file or directory that a path names.
    pub(crate) fn find(&self, base: Inode, path: &str) -> Result<Inode, ErrorCode> {
        let place = self.place(base, path)?;
        let found = place.found.ok_or(ErrorCode::NoEntry)?;
        if place.slash {
            self.names(found)?;
        }
        Ok(found)
    }

    /// Opens the file or directory that a path names, or makes the file.
    pub(crate) fn open_at(
        &mut self,
        base: Inode,
        path: &str,
        how: Opening,
        now: Instant,
    ) -> Result<Inode, ErrorCode> {
        if how.directory && (how.create || how.exclusive || how.truncate) {
            return Err(ErrorCode::Invalid);
        }
        let place = self.place(base, path)?;
        let Some(found) = place.found else {
            return match place.name {
                Some(_) if how.create && place.slash => Err(ErrorCode::IsDirectory),
                Some(name) if how.create => {
                    self.give(place.directory, name, Content::File(Vec::new()), now)
                }
                _ => Err(ErrorCode::NoEntry),
            };
        };
        if how.create && how.exclusive {
            return Err(ErrorCode::Exist);
        }
        if self.node(found)?.is_directory() {
            if how.create || how.truncate || how.write {
                return Err(ErrorCode::IsDirectory);
            }
        } else if how.directory || place.slash {
            return Err(ErrorCode::NotDirectory);
        } else if how.truncate {
            self.resize(found, 0, now)?;
        }
        Ok(found)
    }

    pub(crate) fn create_directory_at(
        &mut self,
        base: Inode,
        path: &str,
        now: Instant,
    ) -> Result<(), ErrorCode> {
        let place = self.place(base, path)?;
        match place.name {
            Some(name) if place.found.is_none() => {
                let content = Content::directory(place.directory);
                self.give(place.directory, name, content, now).map(drop)
            }
            _ => Err(ErrorCode::Exist),
        }
    }

    pub(crate) fn remove_directory_at(
        &mut self,
        base: Inode,
        path: &str,
        now: Instant,
    ) -> Result<(), ErrorCode> {
        let place = self.place(base, path)?;
        let name = place.name.ok_or(ErrorCode::Invalid)?;
        let found = place.found.ok_or(ErrorCode::NoEntry)?;
        if !self.names(found)?.is_empty() {
            return Err(ErrorCode::NotEmpty);
        }
        self.forget(place.directory, name, now)?;
        self.unlink(found, now);
        Ok(())
    }

    pub(crate) fn unlink_file_at(
        &mut self,
        base: Inode,
        path: &str,
        now: Instant,
    ) -> Result<(), ErrorCode> {
        let place = self.place(base, path)?;
        let name = place.name.ok_or(ErrorCode::IsDirectory)?;
        let found = place.found.ok_or(ErrorCode::NoEntry)?;
        if self.node(found)?.is_directory() {
            return Err(ErrorCode::IsDirectory);
        }
        if place.slash {
            return Err(ErrorCode::NotDirectory);
        }
        self.forget(place.directory, name, now)?;
        self.unlink(found, now);
        Ok(())
    }

    /// Moves a file or a directory with all that is in it; replaces a file, or an empty directory.
    pub(crate) fn rename_at(
        &mut self,
        (old_base, old_path): (Inode, &str),
        (new_base, new_path): (Inode, &str),
        now: Instant,
    ) -> Result<(), ErrorCode> {
        let old = self.place(old_base, old_path)?;
        let new = self.place(new_base, new_path)?;
        let (Some(old_name), Some(new_name)) = (old.name, new.name) else {
            return Err(ErrorCode::Busy);
        };
        let moved = old.found.ok_or(ErrorCode::NoEntry)?;
        let is_directory = self.node(moved)?.is_directory();
        if !is_directory && (old.slash || new.slash) {
            return Err(ErrorCode::NotDirectory);
        }
        if new.found == Some(moved) {
            return Ok(());
        }
        if is_directory && self.ancestors(new.directory).any(|above| above == moved) {
            return Err(ErrorCode::Invalid);
        }
        if let Some(replaced) = new.found {
            match (is_directory, self.node(replaced)?.is_directory()) {
                (true, false) => return Err(ErrorCode::NotDirectory),
                (false, true) => return Err(ErrorCode::IsDirectory),
                (true, true) if !self.names(replaced)?.is_empty() => {
                    return Err(ErrorCode::NotEmpty);
                }
                _ => {}
            }
        }
        self.room_at(new.directory, self.height(moved))?;
        self.forget(old.directory, old_name, now)?;
        if let Some(replaced) = new.found {
            self.unlink(replaced, now);
        }
        self.remember(new.directory, new_name, moved, now)?;
        let node = self.node_mut(moved)?;
        node.times.changed = now;
        if let Content::Directory { parent, .. } = &mut node.content {
            *parent = new.directory;
        }
        Ok(())
    }

    /// Makes a new file or directory under a name that is free.
    fn give(
        &mut self,
        directory: Inode,
        name: &str,
        content: Content,
        now: Instant,
    ) -> Result<Inode, ErrorCode> {
        self.room_at(directory, 1)?;
        self.room_for_entry()?;
        let inode = self.add(content, now);
        self.remember(directory, name, inode, now)?;
        Ok(inode)
    }

    fn remember(
        &mut self,
        directory: Inode,
        name: &str,
        inode: Inode,
        now: Instant,
    ) -> Result<(), ErrorCode> {
        self.rewrite(directory, now, |names| {
            names.insert(name.to_owned(), inode);
        })
    }

    fn forget(&mut self, directory: Inode, name: &str, now: Instant) -> Result<(), ErrorCode> {
        self.rewrite(directory, now, |names| {
            names.remove(name);
        })
    }

    fn rewrite(
        &mut self,
        directory: Inode,
        now: Instant,
        change: impl FnOnce(&mut std::collections::BTreeMap<String, Inode>),
    ) -> Result<(), ErrorCode> {
        let node = self.node_mut(directory)?;
        let Content::Directory { names, .. } = &mut node.content else {
            return Err(ErrorCode::NotDirectory);
        };
        change(names);
        node.times.modified = now;
        node.times.changed = now;
        Ok(())
    }

    /// Refuses something of that height in a directory that is removed or too deep.
    fn room_at(&mut self, directory: Inode, height: u64) -> Result<(), ErrorCode> {
        if !self.node(directory)?.linked {
            return Err(ErrorCode::NoEntry);
        }
        let depth = self.ancestors(directory).count() as u64 - 1 + height;
        let most = u64::from(self.limits().depth);
        if depth > most {
            self.refuse("files.depth", most, depth);
            return Err(ErrorCode::Quota);
        }
        Ok(())
    }

    /// A directory, the one it is in, and so on to the root.
    fn ancestors(&self, directory: Inode) -> impl Iterator<Item = Inode> {
        std::iter::successors(Some(directory), |&inode| {
            match self.nodes.get(&inode).map(|node| &node.content) {
                Some(Content::Directory { parent, .. }) if inode != ROOT => Some(*parent),
                _ => None,
            }
        })
    }

    /// The height of a node: the number of names on the longest way down from its place. 1 for a file.
    fn height(&self, top: Inode) -> u64 {
        let mut height = 0;
        let mut level = vec![top];
        while !level.is_empty() {
            height += 1;
            let below = level.iter().filter_map(|inode| self.names(*inode).ok());
            level = below.flat_map(|names| names.values().copied()).collect();
        }
        height
    }
}

#[cfg(test)]
mod tests;
