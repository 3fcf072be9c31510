//! What the user approved: servers by the digest of what would run, tools by the digest of their definitions.
//!
//! Invariant: a change is written as a whole or not at all. Nothing here knows what a digest is made of.

use std::collections::BTreeMap;

use rusqlite::{OptionalExtension, TransactionBehavior, params};

use super::{Store, StoreError};
use crate::clock;
use crate::ids::ServerId;

/// A server that the user approved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovedServer {
    /// Digest of what would run.
    pub digest: String,
    /// The same for people, secrets masked.
    pub shown: String,
    /// Whether its tools were listed since the approval.
    pub listed: bool,
}

/// A tool as it was when it was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownTool {
    /// The name that the server knows.
    pub tool: String,
    /// Digest of its definition.
    pub digest: String,
    /// The definition as JSON.
    pub definition: String,
    /// Whether it was there when the user approved, or was looked at since.
    pub seen: bool,
}

impl Store {
    /// The approval of a server, when there is one.
    pub fn approved_server(&self, server: &ServerId) -> Result<Option<ApprovedServer>, StoreError> {
        Ok(self
            .connection()
            .prepare_cached("SELECT digest, shown, listed FROM approved_servers WHERE server = ?1")?
            .query_row([server.as_str()], |row| {
                Ok(ApprovedServer { digest: row.get(0)?, shown: row.get(1)?, listed: row.get(2)? })
            })
            .optional()?)
    }

    /// Approves a server. When it is another one than before, its tools are forgotten: they will be listed anew.
    pub fn approve_server(&self, server: &ServerId, digest: &str, shown: &str) -> Result<(), StoreError> {
        let mut connection = self.connection();
        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        tx.execute(
            "DELETE FROM approved_servers WHERE server = ?1 AND digest <> ?2",
            [server.as_str(), digest],
        )?;
        tx.execute(
            "INSERT INTO approved_servers (server, digest, shown, at) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (server) DO UPDATE SET shown = excluded.shown",
            params![server.as_str(), digest, shown, clock::now().as_millisecond()],
        )?;
        Ok(tx.commit()?)
    }

    /// Forgets a server and its tools.
    pub fn forget_server(&self, server: &ServerId) -> Result<(), StoreError> {
        self.connection().execute("DELETE FROM approved_servers WHERE server = ?1", [server.as_str()])?;
        Ok(())
    }

    /// The digests of a server's known tools and whether each was seen, by the name that the server knows.
    pub fn known_tools(&self, server: &ServerId) -> Result<BTreeMap<String, (String, bool)>, StoreError> {
        let connection = self.connection();
        let mut statement =
            connection.prepare_cached("SELECT tool, digest, seen FROM known_tools WHERE server = ?1")?;
        let rows =
            statement.query_map([server.as_str()], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The recorded definition of a tool, as JSON.
    pub fn known_definition(&self, server: &ServerId, tool: &str) -> Result<Option<String>, StoreError> {
        Ok(self
            .connection()
            .prepare_cached("SELECT definition FROM known_tools WHERE server = ?1 AND tool = ?2")?
            .query_row([server.as_str(), tool], |row| row.get(0))
            .optional()?)
    }

    /// Records tools of an approved server, over what was known of them. With `listed` the first listing is over.
    pub fn record_tools(
        &self,
        server: &ServerId,
        tools: &[KnownTool],
        listed: bool,
    ) -> Result<(), StoreError> {
        let mut connection = self.connection();
        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for tool in tools {
            // Nothing is recorded of a server whose approval was taken back meanwhile.
            tx.prepare_cached(
                "INSERT OR REPLACE INTO known_tools (server, tool, digest, definition, seen)
                 SELECT server, ?2, ?3, ?4, ?5 FROM approved_servers WHERE server = ?1",
            )?
            .execute(params![
                server.as_str(),
                tool.tool,
                tool.digest,
                tool.definition,
                tool.seen
            ])?;
        }
        if listed {
            tx.execute("UPDATE approved_servers SET listed = 1 WHERE server = ?1", [server.as_str()])?;
        }
        Ok(tx.commit()?)
    }
}
