//! Both stores keep the promises of the conformance kit, a store in a namespace too.

mod beside;

use std::sync::Arc;

use beside::Beside;
use tidegate_store::Store;
use tidegate_store::kit::Place;
use tidegate_store::memory::MemoryStore;
use tidegate_store::sqlite::{Options, SqliteStore};

struct InMemory(MemoryStore);

impl Place for InMemory {
    fn open(&self) -> Arc<dyn Store> {
        Arc::new(self.0.reopen())
    }
}

struct InFile(tempfile::TempDir);

impl Place for InFile {
    fn open(&self) -> Arc<dyn Store> {
        Arc::new(SqliteStore::open(&self.0.path().join("tidegate.db")).expect("the store opens"))
    }
}

tidegate_store::conformance!(memory, || Box::new(InMemory(MemoryStore::new())));
tidegate_store::conformance!(sqlite, || Box::new(InFile(
    tempfile::tempdir().expect("a temporary folder")
)));

/// Alone in its file: a statement that meant the plain tables would find none.
struct InNamespace(tempfile::TempDir);

impl Place for InNamespace {
    fn open(&self) -> Arc<dyn Store> {
        let options = Options {
            namespace: "billing".parse().expect("a name"),
            ..Options::default()
        };
        let file = self.0.path().join("all.db");
        Arc::new(SqliteStore::open_with(&file, &options).expect("the store opens"))
    }
}

tidegate_store::conformance!(named, || Box::new(InNamespace(
    tempfile::tempdir().expect("a temporary folder")
)));

// In a file full of others' rows, one of the others at work.
tidegate_store::conformance!(beside_others, || Box::new(Beside::new()));

/// The faulty store keeps every promise while it is told nothing.
struct Wrapped(MemoryStore);

impl Place for Wrapped {
    fn open(&self) -> Arc<dyn Store> {
        Arc::new(tidegate_store::faulty::FaultyStore::new(Arc::new(
            self.0.reopen(),
        )))
    }
}

tidegate_store::conformance!(faulty, || Box::new(Wrapped(MemoryStore::new())));

/// Every promise in the contract's prose names a test that exists.
#[test]
fn promises_name_their_tests() {
    let contract = [include_str!("../src/lib.rs"), include_str!("../src/commit.rs")].concat();
    let named: Vec<&str> = contract
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|name| {
            name.matches('_').count() > 1 && name.chars().all(|c| c.is_ascii_lowercase() || c == '_')
        })
        .collect();
    assert!(named.len() >= 8, "{named:?}");
    for name in named.into_iter().filter(|name| *name != "may_have_happened") {
        assert!(
            tidegate_store::kit::NAMES.contains(&name),
            "`{name}` is promised, and no test has this name"
        );
    }
}
