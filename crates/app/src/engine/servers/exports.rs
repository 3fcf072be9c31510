//! Servers of the settings in the shape that other hosts read.

use lectern_core::ServerId;
use lectern_mcp::export::{Shape, export};
use lectern_mcp::{ServerConfig, import};
use serde_json::Value;

use crate::engine::{Engine, unknown_server};
use crate::settings::Settings;
use crate::view::Problem;

impl Engine {
    /// The file that another host reads, secrets as references only. No ids mean all servers of the settings.
    pub fn export_servers(&self, ids: &[ServerId], shape: Shape) -> Result<String, Problem> {
        let settings = Settings::read(&self.0.home)?;
        if let Some(unknown) = ids.iter().find(|id| !settings.servers.contains_key(id.as_str())) {
            return Err(unknown_server(unknown));
        }
        let chosen = settings
            .servers
            .iter()
            .filter(|(id, _)| ids.is_empty() || ids.iter().any(|c| c.as_str() == **id));
        let read: Vec<(ServerConfig, lectern_mcp::Entry)> = chosen
            .filter_map(|(id, value)| Some((settings.server(id)?.ok()?, value.as_object()?.clone())))
            .collect();
        let inputs = import::read_inputs(&settings.inputs);
        let file: Value = export(read.iter().map(|(config, entry)| (config, entry.clone())), &inputs, shape);
        serde_json::to_string_pretty(&file)
            .map_err(|error| Problem::new("defect", format!("write the servers: {error}")))
    }
}
