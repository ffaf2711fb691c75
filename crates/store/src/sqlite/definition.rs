//! Deployed resources and definitions.

use std::sync::Arc;

use rusqlite::{OptionalExtension, Row, params};
use tidegate_model::{DefinitionKey, DeploymentKey, Timestamp};

use super::error::Trouble;
use super::names::Tables;
use crate::row::{DefinitionFilter, DefinitionKind, DefinitionRow, Page};

pub(super) fn add_resource(conn: &Tables<'_>, key: u64, bytes: &[u8]) -> Result<(), Trouble> {
    conn.prepare_cached("INSERT INTO resources (key, bytes) VALUES (?1, ?2)")?
        .execute(params![key as i64, bytes])?;
    Ok(())
}

pub(super) fn resource(conn: &Tables<'_>, key: u64) -> Result<Option<Arc<[u8]>>, Trouble> {
    let mut statement = conn.prepare_cached("SELECT bytes FROM resources WHERE key = ?1")?;
    let bytes: Option<Vec<u8>> = statement
        .query_row(params![key as i64], |row| row.get(0))
        .optional()?;
    Ok(bytes.map(Arc::from))
}

pub(super) fn add(conn: &Tables<'_>, row: &DefinitionRow) -> Result<(), Trouble> {
    conn.prepare_cached(
        "INSERT INTO definitions (key, deployment, resource, resource_name, checksum, process_id, version, name, \
         tenant, deployed_at, is_deleted, is_decision) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    )?
    .execute(params![
        row.key.get() as i64,
        row.deployment.get() as i64,
        row.resource as i64,
        row.resource_name,
        row.checksum,
        row.process_id,
        row.version,
        row.name,
        row.tenant,
        row.deployed_at.as_ms(),
        row.is_deleted,
        row.kind == DefinitionKind::Decision
    ])?;
    Ok(())
}

/// The row stays: live instances go on with it, and its version is never given again.
pub(super) fn delete(conn: &Tables<'_>, key: DefinitionKey) -> Result<(), Trouble> {
    conn.prepare_cached("UPDATE definitions SET is_deleted = 1 WHERE key = ?1")?
        .execute(params![key.get() as i64])?;
    Ok(())
}

pub(super) fn get(conn: &Tables<'_>, key: DefinitionKey) -> Result<Option<DefinitionRow>, Trouble> {
    let mut statement = conn.prepare_cached(concat!(
        "SELECT key, deployment, resource, resource_name, checksum, process_id, version, name, tenant, deployed_at, ",
        "is_deleted, is_decision FROM definitions WHERE key = ?1"
    ))?;
    Ok(statement.query_row(params![key.get() as i64], read).optional()?)
}

pub(super) fn highest_version(conn: &Tables<'_>, process_id: &str, tenant: &str) -> Result<u32, Trouble> {
    let mut statement = conn.prepare_cached(
        "SELECT coalesce(max(version), 0) FROM definitions WHERE process_id = ?1 AND tenant = ?2",
    )?;
    Ok(statement.query_row(params![process_id, tenant], |row| row.get(0))?)
}

pub(super) fn list(
    conn: &Tables<'_>,
    filter: &DefinitionFilter,
    page: Page,
) -> Result<Vec<DefinitionRow>, Trouble> {
    let mut statement = conn.prepare_cached(
        "SELECT key, deployment, resource, resource_name, checksum, process_id, version, name, tenant, deployed_at, \
         is_deleted, is_decision FROM definitions AS listed \
         WHERE key < ?1 AND is_deleted = 0 AND (?2 IS NULL OR process_id = ?2) AND (?3 IS NULL OR tenant = ?3) \
         AND (?6 IS NULL OR is_decision = ?6) \
         AND (NOT ?4 OR version = (SELECT max(version) FROM definitions AS other WHERE \
         other.process_id = listed.process_id AND other.tenant = listed.tenant AND other.is_deleted = 0 \
         AND other.is_decision = listed.is_decision)) \
         ORDER BY key DESC LIMIT ?5",
    )?;
    let asked = params![
        super::before(page),
        filter.process_id,
        filter.tenant,
        filter.latest,
        super::rows(page.limit),
        filter.kind.map(|kind| kind == DefinitionKind::Decision)
    ];
    let rows = statement.query_map(asked, read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn read(row: &Row<'_>) -> rusqlite::Result<DefinitionRow> {
    Ok(DefinitionRow {
        key: DefinitionKey(row.get::<_, i64>(0)? as u64),
        deployment: DeploymentKey(row.get::<_, i64>(1)? as u64),
        resource: row.get::<_, i64>(2)? as u64,
        resource_name: row.get(3)?,
        checksum: row.get(4)?,
        process_id: row.get(5)?,
        version: row.get(6)?,
        name: row.get(7)?,
        tenant: row.get(8)?,
        deployed_at: Timestamp::from_ms(row.get(9)?),
        is_deleted: row.get(10)?,
        kind: if row.get(11)? {
            DefinitionKind::Decision
        } else {
            DefinitionKind::Process
        },
    })
}
