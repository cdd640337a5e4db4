//! A task's database: bytes of which every query gets a copy.

use rlf_plugin::data::{self, Entry};
use rlf_plugin::error_message;
use rusqlite::{Connection, MAIN_DB};

use crate::{
    Reference,
    compare::Table,
    query::{self, Limits, Stopped},
};

/// The slot that databases are bound to.
const SLOT: &str = "databases";

/// The file-name endings that may follow the database's name.
const ENDINGS: [&str; 5] = ["", ".sqlite", ".db", ".sqlite3", ".sql"];

/// Memory of SQLite besides two copies of the database, in bytes: for sorting, grouping and results.
const WORKING_BYTES: usize = 48 << 20;

/// A serialised SQLite database.
#[derive(Debug)]
pub(crate) struct Database {
    image: Vec<u8>,
}

impl Database {
    /// The database that a task names or makes.
    pub(crate) fn new(reference: &Reference, limits: &Limits) -> Result<Self, String> {
        match (&reference.schema, &reference.database) {
            (Some(script), None) => Self::from_script(script, limits),
            (None, Some(name)) => Self::named(name, limits),
            (Some(_), Some(_)) => Err(
                "its reference has both a `schema` and a `database`: which one holds?".to_owned(),
            ),
            (None, None) => Err("its reference has neither a `schema` nor a `database`".to_owned()),
        }
    }

    fn named(name: &str, limits: &Limits) -> Result<Self, String> {
        let entries = data::entries(SLOT).map_err(|error| {
            format!(
                "the database `{name}` cannot be read, for nothing is bound to `{SLOT}`: {}",
                error_message(&error)
            )
        })?;
        let entry = find(&entries, name).ok_or_else(|| {
            let known: Vec<&str> = entries.iter().take(5).map(|entry| &*entry.path).collect();
            format!("there is no database `{name}` in `{SLOT}`, which begins with {known:?}")
        })?;
        let bytes = data::read(SLOT, entry).map_err(|error| {
            format!(
                "the database {} cannot be read: {}",
                entry.path,
                error_message(&error)
            )
        })?;
        if bytes.starts_with(b"SQLite format 3\0") {
            return Self::from_file(bytes, &entry.path, limits);
        }
        let script = String::from_utf8(bytes).map_err(|_| {
            format!(
                "{} is neither a SQLite database nor a script in UTF-8",
                entry.path
            )
        })?;
        Self::from_script(&script, limits).map_err(|why| format!("{}: {why}", entry.path))
    }

    fn from_file(mut image: Vec<u8>, path: &str, limits: &Limits) -> Result<Self, String> {
        // A write-ahead log needs files beside the database; the file's content is complete without it.
        if let Some(versions) = image.get_mut(18..20) {
            versions.fill(1);
        }
        let database = Self { image };
        let looked = database.query("SELECT count(*) FROM sqlite_master", limits);
        looked.map_err(|why| format!("{path} is no SQLite database: reading it {why}"))?;
        Ok(database)
    }

    fn from_script(script: &str, limits: &Limits) -> Result<Self, String> {
        let made = || -> rusqlite::Result<Vec<u8>> {
            let mut connection = Connection::open_in_memory()?;
            connection.execute_batch("PRAGMA temp_store = memory")?;
            // The script belongs to the task; the memory of a call limits the size of its database.
            query::limit(&mut connection, limits)?;
            connection.execute_batch(script)?;
            Ok(connection.serialize(MAIN_DB)?.to_vec())
        };
        let image = made().map_err(|error| format!("the script of its database fails: {error}"))?;
        Ok(Self { image })
    }

    /// Runs a query on a separate copy.
    pub(crate) fn query(&self, sql: &str, limits: &Limits) -> Result<Table, Stopped> {
        let opened = || -> rusqlite::Result<Connection> {
            let mut connection = Connection::open_in_memory()?;
            self.bound(&connection)?;
            // A script without a table produces an empty image.
            if !self.image.is_empty() {
                connection.deserialize_read_exact(MAIN_DB, &*self.image, self.image.len(), true)?;
            }
            query::limit(&mut connection, limits)?;
            query::read_only(&mut connection)?;
            Ok(connection)
        };
        let connection =
            opened().map_err(|error| Stopped::Refused(format!("finds no database: {error}")))?;
        query::run(&connection, sql, limits)
    }

    /// Keeps everything in memory, and limits it. The limit is shared by all connections and can only be lowered.
    /// Every query of a call has the same limit, because a call has one database.
    fn bound(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute_batch(&format!(
            "PRAGMA temp_store = memory; PRAGMA hard_heap_limit = {};",
            WORKING_BYTES + 2 * self.image.len()
        ))
    }

    /// An upper bound of the length of a value in it.
    pub(crate) fn bytes(&self) -> usize {
        self.image.len()
    }
}

fn find<'a>(entries: &'a [Entry], name: &str) -> Option<&'a Entry> {
    let base = name.rsplit('/').next().unwrap_or(name);
    let candidates = ENDINGS
        .iter()
        .flat_map(|end| [format!("{name}{end}"), format!("{name}/{base}{end}")]);
    candidates
        .into_iter()
        .find_map(|path| entries.iter().find(|entry| entry.path == path))
}
