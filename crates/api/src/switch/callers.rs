//! Who may ask a window's API from elsewhere.
//!
//! Invariant: what can't be read is named and nothing is served; an entry is never passed over in silence.

use lectern_app::callers::{checked, host, origin};
use lectern_app::view::{ApiCallers, ApiView, Problem};
use url::Url;

use super::Switch;

impl Switch {
    /// Lets these ask from now on, and no others. What is served begins anew for it: what is under way has ten seconds.
    pub fn set_callers(&self, callers: &ApiCallers) -> Result<ApiView, Problem> {
        let callers = checked(callers)?;
        self.0.engine.change_api(|entry| {
            entry.origins.clone_from(&callers.origins);
            entry.hosts.clone_from(&callers.hosts);
        })?;
        self.0.wanted.send_if_modified(|wanted| {
            let other = wanted.callers != callers;
            wanted.callers = callers;
            other
        });
        self.told();
        Ok(self.view())
    }
}

/// As a server takes them. The settings are a text file; what somebody wrote there may be anything.
pub(super) fn read(callers: &ApiCallers) -> Result<(Vec<Url>, Vec<String>), Problem> {
    let origins = callers.origins.iter().map(|text| origin(text)).collect::<Result<_, _>>()?;
    let hosts = callers.hosts.iter().map(|text| host(text)).collect::<Result<_, _>>()?;
    Ok((origins, hosts))
}
