//! A power cut at any moment: every commit that was told is there afterwards, and none is there by half.
//!
//! A SQLite VFS keeps, beside the real files, what a disk would hold if the power went now: what was synced, and of the
//! writes since then an arbitrary part, torn at sectors. At random moments inside writes and syncs it takes such images,
//! with what had been told until then; each is opened as a store of its own and compared.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, mpsc};

use rusqlite::ffi;
use tidegate_model::{DefinitionKey, InstanceKey, SubStatus, Timestamp};
use tidegate_store::sqlite::{Options, SqliteStore};
use tidegate_store::{
    Batch, Commit, CommitError, CommitResult, ErrorKind, InstanceRow, InstanceUpdate, JournalRow, Queries,
    Store, Write,
};

const VFS: &CStr = c"forgetful";
const SECTOR: usize = 512;
const INSTANCES: u64 = 6;
const SEEDS: u64 = 4;
const IMAGES: usize = 12;
/// Enough for the WAL to begin anew several times.
const BATCHES: u64 = 220;

#[test]
fn told_commits_survive_a_power_cut() {
    for seed in 1..=SEEDS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tidegate.db");
        disk().watch(folder.path(), seed);
        let store = open(&path);
        let epoch = store.activate().unwrap().epoch;
        for revision in 1..=BATCHES {
            let commits = (1..=INSTANCES).map(|key| next(key, revision, seed)).collect();
            let results = run(&store, epoch, commits, move || disk().told(revision));
            assert!(results.iter().all(Result::is_ok), "{results:?}");
        }
        store.close();
        let images = disk().take_images();
        assert!(images.len() > IMAGES / 2, "{} images", images.len());
        for image in images {
            check(&image, seed);
        }
    }
}

fn check(image: &PowerCut, seed: u64) {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in &image.files {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    let what = format!("seed {seed}, told {}", image.told);
    let store = SqliteStore::open(&folder.path().join("tidegate.db"))
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    let mut revisions = Vec::new();
    for key in 1..=INSTANCES {
        let found = store
            .load(InstanceKey(key))
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        let revision = found.as_ref().map_or(0, |found| found.row.revision);
        let journal: Vec<u64> = store
            .journal(InstanceKey(key), 0, usize::MAX)
            .unwrap()
            .iter()
            .map(|row| row.revision)
            .collect();
        assert_eq!(
            journal,
            (1..=revision).collect::<Vec<_>>(),
            "{what}: row and journal are one unit"
        );
        revisions.push(revision);
    }
    assert!(
        revisions.iter().all(|revision| *revision >= image.told),
        "{what}: found {revisions:?}"
    );
    store.close();
}

/// A sync that fails leaves a commit in doubt; the store says so and goes on.
#[test]
fn a_failed_sync_leaves_the_commit_in_doubt() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("tidegate.db"));
    let epoch = store.activate().unwrap().epoch;
    let one = |revision| vec![next(1, revision, 0)];
    assert!(run(&store, epoch, one(1), || ()).remove(0).is_ok());
    disk().fail(folder.path(), Some(Fault::Sync));
    match run(&store, epoch, one(2), || ()).remove(0) {
        Err(CommitError::Failed {
            error,
            may_have_happened: true,
        }) => {
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        }
        other => panic!("{other:?}"),
    }
    disk().fail(folder.path(), None);
    // In this process it did not happen: the next commit of the same revision takes its place.
    assert_eq!(store.instance(InstanceKey(1)).unwrap().unwrap().revision, 1);
    assert!(run(&store, epoch, one(2), || ()).remove(0).is_ok());
    store.close();
    drop(store);
    let store = SqliteStore::open(&folder.path().join("tidegate.db")).unwrap();
    assert_eq!(store.instance(InstanceKey(1)).unwrap().unwrap().revision, 2);
}

/// A disk without space for the log: nothing of the commit is there, and the store goes on when there is space.
#[test]
fn a_log_without_space_fails_as_full() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("tidegate.db"));
    let epoch = store.activate().unwrap().epoch;
    assert!(
        run(&store, epoch, vec![next(1, 1, 0), next(2, 1, 0)], || ())
            .iter()
            .all(Result::is_ok)
    );
    disk().fail(folder.path(), Some(Fault::Full));
    for result in run(&store, epoch, (1..=2).map(|key| next(key, 2, 0)).collect(), || ()) {
        match result {
            Err(CommitError::Failed {
                error,
                may_have_happened: false,
            }) => assert_eq!(error.kind(), ErrorKind::Full),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(store.instance(InstanceKey(1)).unwrap().unwrap().revision, 1);
    disk().fail(folder.path(), None);
    assert!(
        run(&store, epoch, vec![next(1, 2, 0), next(2, 2, 0)], || ())
            .iter()
            .all(Result::is_ok)
    );
}

fn open(path: &Path) -> SqliteStore {
    registered();
    let vfs = Some(VFS.to_str().unwrap().to_owned());
    SqliteStore::open_with(
        path,
        &Options {
            vfs,
            ..Options::default()
        },
    )
    .unwrap()
}

fn run(
    store: &SqliteStore,
    epoch: u64,
    commits: Vec<Commit>,
    told: impl FnOnce() + Send + 'static,
) -> Vec<CommitResult> {
    let (tell, results) = mpsc::channel();
    let done = Box::new(move |outcome: Vec<CommitResult>| {
        told();
        let _ = tell.send(outcome);
    });
    store.submit(Batch {
        epoch,
        key_high: 0,
        commits,
        done,
    });
    results.recv().unwrap()
}

fn next(key: u64, revision: u64, seed: u64) -> Commit {
    let key = InstanceKey(key);
    let journal = JournalRow {
        instance: key,
        revision,
        first_sequence: revision,
        payload: vec![3; 200],
    };
    let instance = if revision == 1 {
        let row = InstanceRow {
            key,
            definition: DefinitionKey(7),
            process_id: Arc::from("order"),
            version: 3,
            tenant: Arc::from("<default>"),
            business_key: None,
            parent: None,
            parent_element: None,
            enclosing: Vec::new(),
            depth: 0,
            revision,
            sub_status: SubStatus::Suspended,
            incident_count: 0,
            attempts: 0,
            started_at: Timestamp::from_ms(1_000),
            ended_at: None,
        };
        Write::CreateInstance {
            row: Box::new(row),
            state: None,
        }
    } else {
        Write::UpdateInstance(InstanceUpdate {
            key,
            revision,
            sub_status: SubStatus::Executing,
            incident_count: 0,
            attempts: 0,
            ended_at: None,
            state: (revision + seed)
                .is_multiple_of(3)
                .then(|| vec![revision as u8; 90_000]),
        })
    };
    Commit {
        expect: vec![],
        writes: vec![instance, Write::Journal(journal)],
    }
}

// The disk.

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    Sync,
    Full,
}

enum Change {
    Write(usize, Vec<u8>),
    Truncate(usize),
}

/// What is on the disk for certain, and what was written since the last sync.
#[derive(Default)]
struct Image {
    synced: Vec<u8>,
    since: Vec<Change>,
}

struct PowerCut {
    told: u64,
    files: Vec<(String, Vec<u8>)>,
}

#[derive(Default)]
struct State {
    watched: PathBuf,
    files: HashMap<PathBuf, Image>,
    told: u64,
    random: u64,
    changes: u64,
    images: Vec<PowerCut>,
    faults: HashMap<PathBuf, Fault>,
}

#[derive(Default)]
struct Disk(Mutex<State>);

impl Disk {
    fn watch(&self, folder: &Path, seed: u64) {
        let mut state = self.0.lock().unwrap();
        let faults = std::mem::take(&mut state.faults);
        *state = State {
            watched: folder.to_owned(),
            random: seed,
            faults,
            ..State::default()
        };
    }

    fn told(&self, revision: u64) {
        self.0.lock().unwrap().told = revision;
    }

    fn take_images(&self) -> Vec<PowerCut> {
        std::mem::take(&mut self.0.lock().unwrap().images)
    }

    fn fail(&self, folder: &Path, fault: Option<Fault>) {
        let mut state = self.0.lock().unwrap();
        state.faults.remove(folder);
        state.faults.extend(fault.map(|fault| (folder.to_owned(), fault)));
    }

    fn fault(&self, path: &Path) -> Option<Fault> {
        let state = self.0.lock().unwrap();
        path.parent().and_then(|folder| state.faults.get(folder)).copied()
    }

    fn change(&self, path: &Path, change: Change) {
        let mut state = self.0.lock().unwrap();
        if path.parent() == Some(&state.watched) {
            state.files.entry(path.to_owned()).or_default().since.push(change);
            state.perhaps_cut();
        }
    }

    fn sync(&self, path: &Path) {
        let mut state = self.0.lock().unwrap();
        if path.parent() == Some(&state.watched) {
            state.perhaps_cut();
            let image = state.files.entry(path.to_owned()).or_default();
            for change in std::mem::take(&mut image.since) {
                change.apply(&mut image.synced);
            }
            state.perhaps_cut();
        }
    }

    fn forget(&self, path: &Path) {
        self.0.lock().unwrap().files.remove(path);
    }
}

impl State {
    fn next_random(&mut self) -> u64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.random >> 33
    }

    /// Takes an image every now and then, spread over the whole run.
    fn perhaps_cut(&mut self) {
        self.changes += 1;
        let is_time = self.told >= BATCHES * self.images.len() as u64 / IMAGES as u64;
        if self.images.len() >= IMAGES || !is_time || !self.next_random().is_multiple_of(20) {
            return;
        }
        let mut files = Vec::new();
        let mut paths: Vec<PathBuf> = self.files.keys().cloned().collect();
        paths.sort();
        for path in paths {
            let mut bytes = self.files[&path].synced.clone();
            for at in 0..self.files[&path].since.len() {
                let dice = self.next_random();
                let change = &self.files[&path].since[at];
                match (dice % 3, change) {
                    (0, _) => {}
                    (1, change) => change.apply(&mut bytes),
                    (_, Change::Truncate(_)) => {}
                    (_, Change::Write(from, data)) => {
                        // Torn: a run of its sectors reached the disk.
                        let sectors = data.len().div_ceil(SECTOR);
                        let first = (dice as usize / 3) % sectors;
                        let end = (first + 1 + (dice as usize / 64) % sectors).min(sectors);
                        let part = data[first * SECTOR..(end * SECTOR).min(data.len())].to_vec();
                        Change::Write(from + first * SECTOR, part).apply(&mut bytes);
                    }
                }
            }
            files.push((path.file_name().unwrap().to_str().unwrap().to_owned(), bytes));
        }
        self.images.push(PowerCut {
            told: self.told,
            files,
        });
    }
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Write(from, data) => {
                if bytes.len() < from + data.len() {
                    bytes.resize(from + data.len(), 0);
                }
                bytes[*from..from + data.len()].copy_from_slice(data);
            }
            Self::Truncate(length) => bytes.truncate(*length),
        }
    }
}

// The VFS: everything goes to the default one as well, except syncs, which only the images need.

struct Registered {
    disk: Disk,
    real: *mut ffi::sqlite3_vfs,
}

// SAFETY: the default VFS is a static of SQLite that is never changed or freed.
unsafe impl Send for Registered {}
unsafe impl Sync for Registered {}

fn disk() -> &'static Disk {
    &registered().disk
}

fn registered() -> &'static Registered {
    static REGISTERED: OnceLock<Registered> = OnceLock::new();
    REGISTERED.get_or_init(|| {
        // SAFETY: the structure is leaked, so SQLite may keep it for good; its name is a static.
        unsafe {
            let real = ffi::sqlite3_vfs_find(std::ptr::null());
            assert!(!real.is_null());
            let mut ours = *real;
            ours.iVersion = 2;
            ours.szOsFile = (size_of::<File>() as c_int) + (*real).szOsFile;
            ours.pNext = std::ptr::null_mut();
            ours.zName = VFS.as_ptr();
            ours.xOpen = Some(open_file);
            ours.xDelete = Some(delete_file);
            assert_eq!(
                ffi::sqlite3_vfs_register(Box::into_raw(Box::new(ours)), 0),
                ffi::SQLITE_OK
            );
            Registered {
                disk: Disk::default(),
                real,
            }
        }
    })
}

/// An open file; the real one's structure follows it in memory.
#[repr(C)]
struct File {
    base: ffi::sqlite3_file,
    /// Where the changes are kept; none for files without a name.
    path: *mut PathBuf,
}

unsafe fn real_of(file: *mut ffi::sqlite3_file) -> *mut ffi::sqlite3_file {
    // SAFETY: SQLite allocated szOsFile bytes, ours and the real one's behind it.
    unsafe { file.cast::<File>().add(1).cast() }
}

unsafe fn path_of<'a>(file: *mut ffi::sqlite3_file) -> Option<&'a PathBuf> {
    // SAFETY: set by `open_file`, freed by `close`.
    unsafe { (*file.cast::<File>()).path.as_ref() }
}

unsafe extern "C" fn open_file(
    _vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: arguments as SQLite gives them to xOpen.
    unsafe {
        let ours = file.cast::<File>();
        (*ours).base.pMethods = std::ptr::null();
        (*ours).path = std::ptr::null_mut();
        let real = registered().real;
        let code = (*real).xOpen.unwrap()(real, name, real_of(file), flags, out_flags);
        if code == ffi::SQLITE_OK {
            if !name.is_null() {
                let path = PathBuf::from(CStr::from_ptr(name).to_str().unwrap());
                (*ours).path = Box::into_raw(Box::new(path));
            }
            (*ours).base.pMethods = &METHODS;
        }
        code
    }
}

unsafe extern "C" fn delete_file(_vfs: *mut ffi::sqlite3_vfs, name: *const c_char, sync: c_int) -> c_int {
    // SAFETY: as xDelete.
    unsafe {
        disk().forget(Path::new(CStr::from_ptr(name).to_str().unwrap()));
        let real = registered().real;
        (*real).xDelete.unwrap()(real, name, sync)
    }
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: the last call for this file; its path was made by Box.
    unsafe {
        let path = (*file.cast::<File>()).path;
        if !path.is_null() {
            drop(Box::from_raw(path));
        }
        let real = real_of(file);
        (*(*real).pMethods).xClose.unwrap()(real)
    }
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    data: *const c_void,
    length: c_int,
    at: i64,
) -> c_int {
    // SAFETY: `data` has `length` bytes.
    unsafe {
        if let Some(path) = path_of(file) {
            if disk().fault(path) == Some(Fault::Full) {
                return ffi::SQLITE_FULL;
            }
            let bytes = std::slice::from_raw_parts(data.cast::<u8>(), length as usize).to_vec();
            disk().change(path, Change::Write(at as usize, bytes));
        }
        let real = real_of(file);
        (*(*real).pMethods).xWrite.unwrap()(real, data, length, at)
    }
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, length: i64) -> c_int {
    // SAFETY: as xTruncate.
    unsafe {
        if let Some(path) = path_of(file) {
            disk().change(path, Change::Truncate(length as usize));
        }
        let real = real_of(file);
        (*(*real).pMethods).xTruncate.unwrap()(real, length)
    }
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, _flags: c_int) -> c_int {
    // SAFETY: as xSync.
    unsafe {
        if let Some(path) = path_of(file) {
            if disk().fault(path) == Some(Fault::Sync) {
                return ffi::SQLITE_IOERR_FSYNC;
            }
            disk().sync(path);
        }
        ffi::SQLITE_OK
    }
}

macro_rules! forward {
    ($($name:ident = $method:ident($($argument:ident: $kind:ty),*) -> $result:ty;)+) => {
        $(
            unsafe extern "C" fn $name(file: *mut ffi::sqlite3_file $(, $argument: $kind)*) -> $result {
                // SAFETY: the arguments go on as they came.
                unsafe {
                    let real = real_of(file);
                    (*(*real).pMethods).$method.unwrap()(real $(, $argument)*)
                }
            }
        )+
    };
}

forward! {
    read = xRead(data: *mut c_void, length: c_int, at: i64) -> c_int;
    file_size = xFileSize(size: *mut i64) -> c_int;
    lock = xLock(level: c_int) -> c_int;
    unlock = xUnlock(level: c_int) -> c_int;
    check_reserved_lock = xCheckReservedLock(out: *mut c_int) -> c_int;
    file_control = xFileControl(op: c_int, argument: *mut c_void) -> c_int;
    sector_size = xSectorSize() -> c_int;
    device_characteristics = xDeviceCharacteristics() -> c_int;
    shm_map = xShmMap(region: c_int, size: c_int, extend: c_int, out: *mut *mut c_void) -> c_int;
    shm_lock = xShmLock(offset: c_int, n: c_int, flags: c_int) -> c_int;
    shm_barrier = xShmBarrier() -> ();
    shm_unmap = xShmUnmap(delete: c_int) -> c_int;
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};
