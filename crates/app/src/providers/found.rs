//! Application-default credentials of this computer: found and shown, used only after the user's yes.
//!
//! Invariant: the file is read, never changed or copied; what is used is what the user said yes to, byte for byte.

use std::path::{Path, PathBuf};

use lectern_cloud::credentials::google;
use lectern_cloud::{Credentials, GoogleLogin, Limits};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::secret::{bad_credentials, json_of};
use crate::secrets::Keyring;
use crate::settings::{Agreed, Login};
use crate::view::{FoundLogin, Problem};

/// Names the file, for all programs of Google's.
const VARIABLE: &str = "GOOGLE_APPLICATION_CREDENTIALS";
const FILE: &str = "application_default_credentials.json";
/// Bytes of the file at most.
const LONGEST: u64 = 1 << 20;

/// Looks for the credentials where Google's own programs do.
pub(crate) fn look(environment: &Keyring) -> Option<FoundLogin> {
    let (path, variable) = match environment.variable(VARIABLE) {
        Some(path) => (PathBuf::from(path), Some(VARIABLE.to_owned())),
        None => (usual_place(environment)?, None),
    };
    if variable.is_none() && !path.exists() {
        return None;
    }
    let found = FoundLogin {
        path: path.display().to_string(),
        variable,
        kind: None,
        account: None,
        project: None,
        problem: None,
    };
    Some(match read(&path).and_then(|file| file.about()) {
        Ok(about) => FoundLogin {
            kind: Some(about.kind.to_owned()),
            account: about.account,
            project: about.project,
            ..found
        },
        Err(problem) => FoundLogin { problem: Some(problem), ..found },
    })
}

/// The user said yes to a file, as it was shown.
pub(crate) fn agree(path: &Path, account: Option<&str>) -> Result<Login, Problem> {
    let file = read(path)?;
    let about = file.about()?;
    if account.is_some() && account != about.account.as_deref() {
        return Err(changed(path));
    }
    GoogleLogin::from_json(&file.value, Limits::default()).map_err(|error| bad_credentials(&error))?;
    let agreed = Agreed { path: path.to_owned(), kind: about.kind.to_owned(), digest: file.digest };
    Ok(Login {
        account: about.account,
        project: about.project,
        agreed: Some(agreed),
        at: lectern_core::clock::now(),
    })
}

/// Who we are with what the user said yes to.
pub(crate) fn credentials(agreed: &Agreed) -> Result<Credentials, Problem> {
    let file = read(&agreed.path)?;
    if file.digest != agreed.digest {
        return Err(changed(&agreed.path));
    }
    let login = GoogleLogin::from_json(&file.value, Limits::default());
    Ok(Credentials::tokens(login.map_err(|error| bad_credentials(&error))?))
}

/// `~/.config/gcloud`, `%APPDATA%\gcloud` on Windows, or where gcloud was told to keep its files.
fn usual_place(environment: &Keyring) -> Option<PathBuf> {
    let folder = match environment.variable("CLOUDSDK_CONFIG") {
        Some(folder) => PathBuf::from(folder),
        None if cfg!(windows) => PathBuf::from(environment.variable("APPDATA")?).join("gcloud"),
        None => PathBuf::from(environment.variable("HOME")?).join(".config").join("gcloud"),
    };
    Some(folder.join(FILE))
}

struct File {
    value: Value,
    digest: String,
}

impl File {
    fn about(&self) -> Result<google::About, Problem> {
        google::about(&self.value).map_err(|error| bad_credentials(&error))
    }
}

fn read(path: &Path) -> Result<File, Problem> {
    let problem = |reason: String| {
        Problem::new("bad_credentials", format!("read {}: {reason}", path.display()))
            .hint("`gcloud auth application-default login` makes this file.")
    };
    let io = |error: std::io::Error| problem(crate::vaults::reason(&error));
    if std::fs::metadata(path).map_err(io)?.len() > LONGEST {
        return Err(problem("it is too long for a file of credentials".to_owned()));
    }
    let text = std::fs::read_to_string(path).map_err(io)?;
    let digest = Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(File { value: json_of(&text)?, digest })
}

fn changed(path: &Path) -> Problem {
    Problem::new("login_changed", format!("{} is not what you said yes to any more", path.display()))
        .hint("Look at it as it is now, and sign in with it again.")
}
