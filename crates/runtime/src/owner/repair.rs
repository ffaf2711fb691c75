//! The change of an instance in memory to another version of its process.

use tidegate_engine::Change;
use tidegate_model::{Cause, InstanceKey, Migration, Obstacle, Rejection};
use tidegate_store::Write;

use super::Owner;

impl Owner {
    /// Changes the definition of an instance that is in memory and has a cycle. The commit holds the whole state: what
    /// stands in the journal behind it speaks of the former definition.
    pub(super) fn migrate(
        &mut self,
        key: InstanceKey,
        migration: &Migration,
        cause: Cause,
    ) -> Result<(), Rejection> {
        let found = self
            .shared
            .definitions
            .get(&*self.shared.store, migration.definition);
        let new = match found {
            Ok(Some(new)) if !new.row.is_deleted => new,
            Ok(_) => return Err(in_the_way("definition-not-found", "is not there any more")),
            Err(_) => return Err(in_the_way("definition-unreadable", "cannot be read now")),
        };
        let now = self.shared.now();
        let Some(resident) = self.residents.get_mut(&key) else {
            return Err(Rejection::NoStart);
        };
        let (was, is) = (&resident.row, &new.row);
        if was.definition == is.key || (&was.process_id, &was.tenant) != (&is.process_id, &is.tenant) {
            let what = "is the one it has, or of another process or tenant";
            return Err(in_the_way("definition-unfit", what));
        }
        if resident.events.is_empty() {
            resident.first_sequence = resident.instance.sequence() + 1;
        }
        let old = resident.loaded.clone();
        let change = Change {
            old: &old.definition,
            from: was.definition,
            new: &new.definition,
            migration,
            cause,
        };
        let keys = self.keys.of(key.get(), now);
        tidegate_engine::migrate(
            &change,
            &mut resident.instance,
            now,
            keys,
            &mut resident.events,
            &mut resident.effects,
        )?;
        let high = keys.high();
        self.keys.note(high);
        resident.row.definition = new.row.key;
        resident.row.version = new.row.version;
        resident.writes_state = true;
        resident.riders.push(Write::ChangeDefinition {
            instance: key,
            definition: new.row.key,
            version: new.row.version,
        });
        // What follows is decided on the new version; it starts after this commit.
        resident.at_commit_point = true;
        resident.loaded = new;
        self.mark_dirty(key);
        Ok(())
    }
}

fn in_the_way(code: &'static str, what: &str) -> Rejection {
    Rejection::Obstructed(vec![Obstacle {
        code,
        element_id: None,
        element_instance_key: None,
        message: format!("the definition that it is to change to {what}"),
    }])
}
