//! What callers may do, and the names under which it is granted.

/// One thing that a caller may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// See the runtime's status, events, shells and metrics.
    RuntimeView,
    /// Pause and resume.
    RuntimePause,
    /// Every runtime action; includes view and pause.
    RuntimeControl,
    /// See definitions and starters.
    DefinitionsRead,
    /// Deploy and unregister.
    DefinitionsWrite,
    /// See instances, their variables and history.
    InstancesRead,
    /// Start, change and cancel instances.
    InstancesWrite,
    /// Publish messages.
    MessagesWrite,
    /// Lease jobs and report their outcomes.
    JobsWork,
    /// See user tasks.
    TasksRead,
    /// Claim and complete user tasks.
    TasksWrite,
    /// See incidents.
    IncidentsRead,
    /// Retry and resolve incidents.
    IncidentsWrite,
    /// See the audit.
    AuditRead,
}

/// Every permission with its name; `:write` includes `:read`.
const NAMES: [(&str, &[Permission]); 16] = {
    use Permission::*;
    [
        ("workflows/runtime:view", &[RuntimeView]),
        ("read:workflow-runtime", &[RuntimeView]),
        ("workflows/runtime:pause", &[RuntimePause]),
        (
            "workflows/runtime:control",
            &[RuntimeView, RuntimePause, RuntimeControl],
        ),
        (
            "ManageWorkflowRuntime",
            &[RuntimeView, RuntimePause, RuntimeControl],
        ),
        ("definitions:read", &[DefinitionsRead]),
        ("definitions:write", &[DefinitionsRead, DefinitionsWrite]),
        ("instances:read", &[InstancesRead]),
        ("instances:write", &[InstancesRead, InstancesWrite]),
        ("messages:write", &[MessagesWrite]),
        ("jobs:work", &[JobsWork]),
        ("tasks:read", &[TasksRead]),
        ("tasks:write", &[TasksRead, TasksWrite]),
        ("incidents:read", &[IncidentsRead]),
        ("incidents:write", &[IncidentsRead, IncidentsWrite]),
        ("audit:read", &[AuditRead]),
    ]
};

impl Permission {
    const fn bit(self) -> u32 {
        1 << self as u32
    }

    /// The name under which it is granted.
    pub fn name(self) -> &'static str {
        NAMES
            .iter()
            .find(|(_, grants)| grants.last() == Some(&self))
            .map_or("*", |(name, _)| name)
    }
}

/// A set of permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permissions(u32);

impl Permissions {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// Everything.
    pub const ALL: Self = Self(u32::MAX);

    /// Reads names such as `*`, `workflows/runtime:view` or `jobs:work`.
    ///
    /// # Errors
    /// A name is unknown; the message lists those that are known.
    pub fn parse<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let mut set = 0;
        for name in names {
            if matches!(name, "*" | "*:*") {
                return Ok(Self::ALL);
            }
            let Some((_, grants)) = NAMES.iter().find(|(known, _)| *known == name) else {
                let known: Vec<_> = NAMES.iter().map(|(known, _)| *known).collect();
                return Err(format!(
                    "no permission `{name}`; there are `*`, {}",
                    known.join(", ")
                ));
            };
            set |= grants.iter().fold(0, |bits, grant| bits | grant.bit());
        }
        Ok(Self(set))
    }

    /// What this one or the other grants.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The names of all that is granted; `*` alone for everything.
    pub fn names(self) -> Vec<&'static str> {
        if self == Self::ALL {
            return vec!["*"];
        }
        let granted = |permission: &&Permission| self.allow(**permission);
        let all = NAMES.iter().filter_map(|(_, grants)| grants.last());
        let mut names: Vec<_> = all.filter(granted).map(|permission| permission.name()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// True if `permission` is granted.
    pub const fn allow(self, permission: Permission) -> bool {
        self.0 & permission.bit() != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_includes_view_and_pause_and_aliases_mean_the_same() {
        let control = Permissions::parse(["workflows/runtime:control"]).unwrap();
        assert!(control.allow(Permission::RuntimeView) && control.allow(Permission::RuntimePause));
        assert!(!control.allow(Permission::JobsWork));
        assert_eq!(Permissions::parse(["ManageWorkflowRuntime"]), Ok(control));
        assert_eq!(
            Permissions::parse(["read:workflow-runtime"]),
            Permissions::parse(["workflows/runtime:view"])
        );
        assert_eq!(Permissions::parse(["*:*"]), Ok(Permissions::ALL));
        assert!(
            Permissions::parse(["jobs:wrok"])
                .unwrap_err()
                .contains("jobs:work")
        );
        assert_eq!(
            control.names(),
            [
                "workflows/runtime:control",
                "workflows/runtime:pause",
                "workflows/runtime:view"
            ]
        );
        assert_eq!(
            (Permissions::ALL.names(), Permissions::NONE.names()),
            (vec!["*"], vec![])
        );
        assert_eq!(Permission::RuntimeControl.name(), "workflows/runtime:control");
        assert_eq!(Permission::RuntimeView.name(), "workflows/runtime:view");
    }
}
