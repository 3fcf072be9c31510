//! Where Gemini is asked.
//!
//! Invariant: nothing that a user or a setting gave becomes a part of a path unescaped.

use url::Url;

use crate::transport::{ConfigError, extend};

/// One of Google's ways to Gemini.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Vertex AI in a project: a region, `global`, or a multi-region (`us`, `eu`).
    Vertex {
        /// The project's id.
        project: String,
        /// E.g. `europe-west1`, `global`, `eu`.
        location: String,
    },
    /// Vertex AI with a key (express mode).
    Express,
    /// The Gemini developer API, with a key.
    Developer,
}

impl Endpoint {
    /// Google's own address.
    pub fn origin(&self) -> String {
        match self {
            Self::Vertex { location, .. } => match location.as_str() {
                "global" => "https://aiplatform.googleapis.com".to_owned(),
                multi @ ("us" | "eu") => format!("https://aiplatform.{multi}.rep.googleapis.com"),
                region => format!("https://{region}-aiplatform.googleapis.com"),
            },
            Self::Express => "https://aiplatform.googleapis.com".to_owned(),
            Self::Developer => "https://generativelanguage.googleapis.com".to_owned(),
        }
    }

    fn version(&self) -> &'static str {
        match self {
            Self::Vertex { .. } | Self::Express => "v1",
            Self::Developer => "v1beta",
        }
    }

    /// The base of all addresses: the given one, or Google's, with the version.
    pub(super) fn base(&self, given: Option<&Url>) -> Result<Url, ConfigError> {
        self.check()?;
        let mut url = match given {
            Some(url) => url.clone(),
            None => {
                let origin = self.origin();
                Url::parse(&origin).map_err(|_| ConfigError::NoAddress(origin))?
            }
        };
        let last = url.path_segments().and_then(|mut all| all.next_back()).unwrap_or_default();
        let has_version =
            last.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        if !has_version {
            extend(&mut url, [self.version()]);
        }
        Ok(url)
    }

    /// `…/models/{model}:{method}`
    pub(super) fn method(&self, base: &Url, model: &str, method: &str) -> Url {
        let mut url = base.clone();
        match self {
            Self::Vertex { project, location } => extend(
                &mut url,
                ["projects", project, "locations", location, "publishers", "google", "models"],
            ),
            Self::Express => extend(&mut url, ["publishers", "google", "models"]),
            Self::Developer => extend(&mut url, ["models"]),
        }
        extend(&mut url, [format!("{model}:{method}").as_str()]);
        url
    }

    /// Where the models are listed. Vertex AI lists those of Google for all projects, and in `v1beta1` only.
    pub(super) fn models(&self, base: &Url) -> Url {
        let mut url = base.clone();
        match self {
            Self::Vertex { .. } | Self::Express => {
                if let Ok(mut path) = url.path_segments_mut() {
                    path.pop();
                }
                extend(&mut url, ["v1beta1", "publishers", "google", "models"]);
            }
            Self::Developer => extend(&mut url, ["models"]),
        }
        url.set_query(Some("pageSize=200"));
        url
    }

    /// The location, at Vertex AI.
    pub(super) fn location(&self) -> Option<&str> {
        match self {
            Self::Vertex { location, .. } => Some(location),
            Self::Express | Self::Developer => None,
        }
    }

    /// A location becomes a part of the host's name, so it has to be one.
    fn check(&self) -> Result<(), ConfigError> {
        let Self::Vertex { project, location } = self else { return Ok(()) };
        if !is_location(location) {
            return Err(ConfigError::Name { what: "location", value: location.clone() });
        }
        if !is_project(project) {
            return Err(ConfigError::Name { what: "project", value: project.clone() });
        }
        Ok(())
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'
}

/// Whether it can be the name of a location.
pub fn is_location(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_plain)
}

/// Whether it can be the id of a project. Those of a domain have its name before a colon.
pub fn is_project(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| is_plain(c) || matches!(c, ':' | '.'))
}

/// The model's name without what lists write before it.
pub(super) fn model_name(model: &str) -> Result<&str, ConfigError> {
    let name = model.rsplit_once("models/").map_or(model, |(_, name)| name).trim();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@');
    if name.is_empty() || !name.chars().all(plain) {
        return Err(ConfigError::Name { what: "model", value: model.to_owned() });
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(endpoint: Endpoint, base: Option<&str>) -> String {
        let given = base.map(|base| Url::parse(base).unwrap());
        let base = endpoint.base(given.as_ref()).unwrap();
        endpoint.method(&base, "gemini-3.5-flash", "streamGenerateContent").to_string()
    }

    fn vertex(location: &str) -> Endpoint {
        Endpoint::Vertex { project: "p-1".into(), location: location.into() }
    }

    #[test]
    fn each_kind_has_its_address() {
        let tail = "publishers/google/models/gemini-3.5-flash:streamGenerateContent";
        for (endpoint, base, expected) in [
            (
                vertex("europe-west1"),
                None,
                format!(
                    "https://europe-west1-aiplatform.googleapis.com/v1/projects/p-1/locations/europe-west1/{tail}"
                ),
            ),
            (
                vertex("global"),
                None,
                format!("https://aiplatform.googleapis.com/v1/projects/p-1/locations/global/{tail}"),
            ),
            (
                vertex("eu"),
                None,
                format!("https://aiplatform.eu.rep.googleapis.com/v1/projects/p-1/locations/eu/{tail}"),
            ),
            (Endpoint::Express, None, format!("https://aiplatform.googleapis.com/v1/{tail}")),
            (
                Endpoint::Developer,
                None,
                "https://generativelanguage.googleapis.com/v1beta/models/gemini-3.5-flash:streamGenerateContent"
                    .into(),
            ),
            (
                vertex("us"),
                Some("http://127.0.0.1:9/x/"),
                format!("http://127.0.0.1:9/x/v1/projects/p-1/locations/us/{tail}"),
            ),
            (Endpoint::Express, Some("http://h/v1beta1"), format!("http://h/v1beta1/{tail}")),
        ] {
            assert_eq!(asked(endpoint, base), expected);
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        assert!(vertex("evil.com/").base(None).is_err());
        assert!(vertex("").base(None).is_err());
        assert!(Endpoint::Vertex { project: "a/b".into(), location: "us".into() }.base(None).is_err());
        assert!(model_name("../x").is_err());
        assert_eq!(model_name("publishers/google/models/gemini-3.5-flash").unwrap(), "gemini-3.5-flash");
    }
}
