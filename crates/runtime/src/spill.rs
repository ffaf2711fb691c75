//! The spill file: interruptions that the store could not take at the end of a drain, beside the data. The next
//! activation turns them into marks and removes the file. Where there is none, crash recovery finds the instances, since
//! their last commit says that they execute.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tidegate_model::{InstanceKey, Interruption};
use tokio::sync::oneshot;

use crate::owner::{Message, Owners};
use crate::shared::{Counters, Shared};

/// One interruption that no commit holds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Spilled {
    pub(crate) instance: InstanceKey,
    pub(crate) record: Interruption,
}

/// Adds records to the file and syncs it, and its folder.
pub(crate) fn write(path: &Path, records: &[Spilled]) -> std::io::Result<()> {
    let mut text = String::new();
    for Spilled { instance, record } in records {
        // The record as the journal has it, in hexadecimal: one encoding for both.
        let bytes = minicbor::to_vec(record).unwrap_or_default();
        text.push_str(&format!("{instance} "));
        bytes
            .iter()
            .for_each(|byte| text.push_str(&format!("{byte:02x}")));
        text.push('\n');
    }
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    match std::path::absolute(path)?.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

/// Reads the file; none is an empty one. A line that was cut short by a crash is left out.
fn read(path: &Path) -> std::io::Result<Vec<Spilled>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut records = Vec::new();
    for line in BufReader::new(file).lines() {
        let line = line?;
        match parse(&line) {
            Some(record) => records.push(record),
            None => tracing::error!(
                line,
                "a line of the spill file cannot be read; crash recovery finds its instance"
            ),
        }
    }
    Ok(records)
}

fn parse(line: &str) -> Option<Spilled> {
    let (instance, hexadecimal) = line.split_once(' ')?;
    let digits = hexadecimal.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Vec<u8> = digits.map(byte).collect::<Option<_>>()?;
    Some(Spilled {
        instance: instance.parse().ok()?,
        record: minicbor::decode(&bytes).ok()?,
    })
}

/// Turns what an earlier generation spilled into marks, before recovery looks for them.
pub(crate) async fn take_up(shared: &Arc<Shared>, owners: &Owners) {
    let Some(path) = shared.options.spill.clone() else {
        return;
    };
    let records = match on_disk(path.clone(), read).await {
        Ok(records) => records,
        Err(error) => {
            tracing::error!(path = %path.display(), "the spill file cannot be read; crash recovery finds its instances: {error}");
            return;
        }
    };
    if records.is_empty() {
        return;
    }
    let mut waiting = Vec::with_capacity(records.len());
    for Spilled { instance, record } in records {
        let (sender, receiver) = oneshot::channel();
        owners.send(instance, Message::MarkSpilled(instance, Box::new(record), sender));
        waiting.push(receiver);
    }
    let count = waiting.len();
    let mut are_all_told = true;
    for receiver in waiting {
        are_all_told &= receiver.await.unwrap_or(false);
    }
    if !are_all_told {
        tracing::error!(path = %path.display(), "not every spilled interruption could be brought to the store; the file stays");
        return;
    }
    Counters::add(&shared.counters.spilled_taken_up, count as u64);
    tracing::info!(count, "spilled interruptions are in the store now");
    if let Err(error) = on_disk(path.clone(), |path| std::fs::remove_file(path)).await {
        tracing::warn!(path = %path.display(), "the spill file could not be removed; what it says is known: {error}");
    }
}

/// Runs file work beside the async runtime.
pub(crate) async fn on_disk<T: Send + 'static>(
    path: PathBuf,
    work: impl FnOnce(&Path) -> std::io::Result<T> + Send + 'static,
) -> std::io::Result<T> {
    crate::tasks::blocking(move || work(&path))
        .await
        .unwrap_or_else(|_| Err(std::io::Error::other("stopped")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_model::{InterruptionReason, Timestamp};

    #[test]
    fn d23_what_is_spilled_is_read_back_and_a_cut_line_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spill");
        assert_eq!(read(&path).unwrap(), []);
        let record = Interruption {
            interrupted_at: Timestamp::from_ms(7),
            reason: InterruptionReason::PersistenceFailure,
            generation_id: "g".to_owned(),
            last_activity_id: None,
            last_activity_node_id: Some("charge".to_owned()),
            ingress_source_name: None,
            cycle_ms: 12,
            reason_text: None,
        };
        let spilled: Vec<_> = [1, 2]
            .map(|key| Spilled {
                instance: InstanceKey(key),
                record: record.clone(),
            })
            .to_vec();
        write(&path, &spilled[..1]).unwrap();
        write(&path, &spilled[1..]).unwrap();
        assert_eq!(read(&path).unwrap(), spilled);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 9]).unwrap();
        assert_eq!(read(&path).unwrap(), spilled[..1]);
        assert!(
            read(&path.join("beneath a file")).is_err(),
            "a file that cannot be read is not an empty one"
        );
    }
}
