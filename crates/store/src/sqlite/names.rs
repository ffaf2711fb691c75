//! Namespaces as table names: a store named `billing` has its journal in the table `billing$journal`, and the store
//! without a name has the plain names. Statements are written once, with the plain names; for a named store they are
//! rendered at their first use.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use parking_lot::RwLock;
use rusqlite::{CachedStatement, Connection};

use super::schema::STEPS;
use crate::namespace::Namespace;

/// Rendered statements that are kept; there are about 150, so this is for what filters of people combine to.
const KEPT: usize = 1024;

/// What the schema gives names to.
struct Known {
    tables: BTreeSet<&'static str>,
    indexes: BTreeSet<&'static str>,
}

static KNOWN: LazyLock<Known> = LazyLock::new(|| {
    let mut known = Known {
        tables: BTreeSet::new(),
        indexes: BTreeSet::new(),
    };
    for step in STEPS {
        let mut words = step.split(|c: char| c.is_whitespace() || c == '(').peekable();
        while let Some(word) = words.next() {
            let names = match word {
                "TABLE" => &mut known.tables,
                "INDEX" => &mut known.indexes,
                _ => continue,
            };
            names.extend(words.peek());
        }
    }
    known
});

/// The names of one store's tables.
pub(super) struct Names {
    namespace: Namespace,
    /// The store without a name: its statements are taken as they are written.
    is_plain: bool,
    rendered: RwLock<HashMap<Box<str>, Arc<str>>>,
}

impl Names {
    pub fn of(namespace: Namespace) -> Self {
        Self {
            is_plain: namespace.is_default(),
            namespace,
            rendered: RwLock::default(),
        }
    }

    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// The tables of a store, by their names in the file.
    pub fn tables(&self) -> Vec<String> {
        let in_file = |table: &&str| match self.is_plain {
            true => (*table).to_owned(),
            false => format!("{}${table}", self.namespace),
        };
        KNOWN.tables.iter().map(in_file).collect()
    }

    /// The store in words, for messages.
    pub fn place(&self, file: &Path) -> PathBuf {
        if self.is_plain {
            return file.to_owned();
        }
        PathBuf::from(format!("{}, namespace {}", file.display(), self.namespace))
    }

    /// `sql` with the names of this store.
    pub fn render(&self, sql: &str) -> Arc<str> {
        if self.is_plain {
            return Arc::from(sql);
        }
        if let Some(rendered) = self.rendered.read().get(sql) {
            return Arc::clone(rendered);
        }
        let fresh: Arc<str> = Arc::from(render(self.namespace.as_str(), sql));
        let mut rendered = self.rendered.write();
        if rendered.len() >= KEPT {
            rendered.clear();
        }
        rendered.insert(sql.into(), Arc::clone(&fresh));
        fresh
    }
}

/// Puts the prefix before each name that stands where a table or an index is named.
fn render(prefix: &str, sql: &str) -> String {
    let mut out = String::with_capacity(sql.len() + 64);
    let mut before = "";
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let is_word = first.is_ascii_alphabetic() || first == '_';
        let length = if is_word {
            rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        } else if first == '\'' {
            rest[1..].find('\'').map(|at| at + 2)
        } else {
            Some(first.len_utf8())
        };
        let (part, after) = rest.split_at(length.unwrap_or(rest.len()));
        let is_name = match before {
            "FROM" | "JOIN" | "INTO" | "UPDATE" | "TABLE" | "ON" => KNOWN.tables.contains(part),
            "INDEX" | "BY" => KNOWN.indexes.contains(part),
            _ => false,
        };
        if is_name {
            out.extend(["\"", prefix, "$", part, "\""]);
        } else {
            out.push_str(part);
        }
        if is_word {
            before = part;
        } else if !first.is_whitespace() {
            before = "";
        }
        rest = after;
    }
    out
}

/// A connection that sees the tables of one store.
pub(super) struct Tables<'a> {
    conn: &'a Connection,
    names: &'a Names,
}

impl<'a> Tables<'a> {
    pub fn new(conn: &'a Connection, names: &'a Names) -> Self {
        Self { conn, names }
    }

    /// A statement with the names of this store, prepared once.
    pub fn prepare_cached(&self, sql: &str) -> rusqlite::Result<CachedStatement<'a>> {
        if self.names.is_plain {
            return self.conn.prepare_cached(sql);
        }
        self.conn.prepare_cached(&self.names.render(sql))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn billing(sql: &str) -> String {
        render("billing", sql)
    }

    #[test]
    fn names_are_replaced_where_a_table_is_named_and_nowhere_else() {
        assert_eq!(
            billing("UPDATE forgotten SET journal = 0 WHERE instance = ?1 AND journal = 1"),
            "UPDATE \"billing$forgotten\" SET journal = 0 WHERE instance = ?1 AND journal = 1"
        );
        assert_eq!(
            billing("SELECT key FROM instances INDEXED BY instances_ended ORDER BY key"),
            "SELECT key FROM \"billing$instances\" INDEXED BY \"billing$instances_ended\" ORDER BY key"
        );
        assert_eq!(
            billing("INSERT INTO audit VALUES ('FROM audit', ?1) ON CONFLICT (key) DO UPDATE SET key = ?2"),
            "INSERT INTO \"billing$audit\" VALUES ('FROM audit', ?1) ON CONFLICT (key) DO UPDATE SET key = ?2"
        );
        assert_eq!(
            billing("DELETE FROM dead_letters WHERE domain IN (SELECT value FROM json_each(?1))"),
            "DELETE FROM \"billing$dead_letters\" WHERE domain IN (SELECT value FROM json_each(?1))"
        );
        assert_eq!(billing("SELECT 'open"), "SELECT 'open");
    }

    /// The schema under a name has the plain schema's tables and indexes, each with the prefix, and no other.
    #[test]
    fn the_whole_schema_can_be_had_under_a_name() {
        let listed = |conn: &Connection| -> BTreeSet<String> {
            conn.prepare("SELECT name FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'")
                .unwrap()
                .query_map([], |row| row.get(0))
                .unwrap()
                .collect::<Result<_, _>>()
                .unwrap()
        };
        let (plain, named) = (
            Connection::open_in_memory().unwrap(),
            Connection::open_in_memory().unwrap(),
        );
        for step in STEPS {
            plain.execute_batch(step).unwrap();
            named.execute_batch(&billing(step)).unwrap();
        }
        let plain = listed(&plain);
        let known = KNOWN.tables.iter().chain(&KNOWN.indexes);
        assert_eq!(plain, known.map(|name| (*name).to_owned()).collect());
        let prefixed = plain.iter().map(|name| format!("billing${name}"));
        assert_eq!(listed(&named), prefixed.collect());
    }
}
