//! What a target offers: the models of a repository, or the file behind an address.
//!
//! The hub's API as Hugging Face documents it: `GET /api/models/{repository}/tree/{revision}?recursive=true` gives
//! entries with `type`, `path`, `size` and, for large files, `lfs.oid` (SHA-256) and `lfs.size`; more than a thousand
//! come in pages, named by the header `Link`. A file is at `/{repository}/resolve/{revision}/{path}`.
//! Invariant: what is listed is bounded, whatever the server sends.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::header::{CONTENT_DISPOSITION, CONTENT_RANGE, CONTENT_TYPE, HeaderMap, LINK};
use reqwest::{Response, StatusCode};
use serde::Deserialize;
use url::Url;

use crate::fault::Fault;
use crate::name::{is_gguf, is_projector, quantisation_of, safe_name, split_file, split_name};
use crate::target::{Target, Wanted};
use crate::web::{Rest, Web, host_of, plain, sha256};

/// Bytes of a page of the list at most.
const LONGEST_PAGE: usize = 16 << 20;
const MOST_PAGES: usize = 100;
/// What stays as it is in a path of the hub.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/');

/// What a target offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offers {
    /// E.g. `Qwen/Qwen3-4B-GGUF`; of an address, the address without its query.
    pub target: String,
    /// Who was asked.
    pub host: String,
    /// Branch, tag or commit.
    pub revision: String,
    /// The models, the smallest first.
    pub offers: Vec<Offer>,
    /// Files that are no models.
    pub other_files: u32,
    /// What the target itself asks for.
    pub wanted: Wanted,
}

/// One model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Its path; of a split model, that of its first file.
    pub name: String,
    /// E.g. `Q4_K_M`.
    pub quantisation: Option<String>,
    /// Whether it is the seeing or hearing part of another.
    pub projector: bool,
    /// Its files in order.
    pub files: Vec<RemoteFile>,
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteFile {
    /// The name that it gets here.
    pub name: String,
    /// Where it is.
    pub url: Url,
    /// In bytes.
    pub size: Option<u64>,
    /// In hexadecimal.
    pub sha256: Option<String>,
}

impl Offer {
    /// All files together.
    pub fn size(&self) -> Option<u64> {
        self.files.iter().map(|file| file.size).sum()
    }
}

impl Offers {
    /// The one that is asked for by name, else by the target, else the usual choice.
    pub fn choose(&self, file: Option<&str>) -> Result<&Offer, Fault> {
        let models = || self.offers.iter().filter(|offer| !offer.projector);
        let none = |wanted: &str| Fault::NoSuchModel {
            repository: self.target.clone(),
            wanted: wanted.to_owned(),
            there: self.offers.iter().map(|offer| offer.name.clone()).collect(),
        };
        match (file, &self.wanted) {
            (Some(name), _) => self.named(name).ok_or_else(|| none(name)),
            (None, Wanted::File(path)) => self.named(path).ok_or_else(|| none(path)),
            (None, Wanted::Quantisation(name)) => {
                let same = |offer: &&Offer| {
                    offer.quantisation.as_ref().is_some_and(|it| it.eq_ignore_ascii_case(name))
                };
                let holds =
                    |offer: &&Offer| offer.name.to_ascii_lowercase().contains(&name.to_ascii_lowercase());
                models().find(same).or_else(|| models().find(holds)).ok_or_else(|| none(name))
            }
            (None, Wanted::Any) => {
                let usual = USUAL
                    .iter()
                    .find_map(|kind| models().find(|offer| offer.quantisation.as_deref() == Some(kind)));
                let first = || models().next().or_else(|| self.offers.first());
                usual.or_else(first).ok_or_else(|| Fault::NoModels(self.target.clone()))
            }
        }
    }

    fn named(&self, name: &str) -> Option<&Offer> {
        let ends = |offer: &&Offer| offer.name.rsplit('/').next() == Some(name);
        let part = |offer: &&Offer| offer.files.iter().any(|file| file.url.path().ends_with(&encoded(name)));
        let offers = || self.offers.iter();
        offers()
            .find(|offer| offer.name == name)
            .or_else(|| offers().find(ends))
            .or_else(|| offers().find(part))
    }
}

/// Good for the size, the best first.
pub const USUAL: [&str; 8] = ["Q4_K_M", "Q4_K_S", "Q4_0", "IQ4_XS", "IQ4_NL", "Q5_K_M", "MXFP4", "Q8_0"];

/// Asks what a target offers.
pub(crate) async fn look(web: &Web, target: &Target) -> Result<Offers, Fault> {
    match target {
        Target::Repository { repository, revision, wanted } => {
            let (entries, host) = list(web, repository, revision).await?;
            let mut offers = offers_of(web, repository, revision, entries)?;
            if offers.offers.is_empty() {
                return Err(Fault::NoModels(repository.clone()));
            }
            offers.host = host;
            offers.wanted = wanted.clone();
            Ok(offers)
        }
        Target::Address(url) => probe(web, url).await,
    }
}

/// An entry of the list.
#[derive(Debug, Deserialize)]
struct Entry {
    #[serde(rename = "type", default)]
    kind: String,
    path: String,
    #[serde(default)]
    size: Option<u64>,
    #[serde(default)]
    lfs: Option<Lfs>,
}

#[derive(Debug, Deserialize)]
struct Lfs {
    #[serde(default)]
    oid: Option<String>,
    #[serde(default)]
    size: Option<u64>,
}

async fn list(web: &Web, repository: &str, revision: &str) -> Result<(Vec<Entry>, String), Fault> {
    let what = format!("repository {repository}");
    let path = format!("api/models/{repository}/tree/{}?recursive=true", encoded_segment(revision));
    let mut next = Some(at_hub(web, &path)?);
    let (mut entries, mut host) = (Vec::new(), host_of(web.hub()));
    for _ in 0..MOST_PAGES {
        let Some(url) = next.take() else { break };
        let reply = web.get(&url, None, &what).await?;
        host = reply.host;
        // A list goes on where it began: the token must not be led elsewhere.
        next = next_page(reply.response.headers(), &url).filter(|next| next.origin() == url.origin());
        let body = whole(reply.response, web, &url).await?;
        let page: Vec<serde_json::Value> = serde_json::from_slice(&body).map_err(|_| Fault::Senseless {
            host: host.clone(),
            what: format!("its list of {repository} can't be read"),
        })?;
        // An entry of a shape that is not known is no file for us.
        entries.extend(page.into_iter().filter_map(|entry| serde_json::from_value::<Entry>(entry).ok()));
    }
    Ok((entries, host))
}

async fn whole(mut response: Response, web: &Web, url: &Url) -> Result<Vec<u8>, Fault> {
    let host = host_of(url);
    let mut body = Vec::new();
    loop {
        let chunk = response.chunk().await.map_err(|error| match error.is_timeout() {
            true => Fault::Silent { host: host.clone(), silence: web.silence() },
            false => Fault::Cut { host: host.clone(), reason: plain(&error) },
        })?;
        let Some(chunk) = chunk else { return Ok(body) };
        if body.len() + chunk.len() > LONGEST_PAGE {
            return Err(Fault::Senseless { host, what: "its list is too long".into() });
        }
        body.extend_from_slice(&chunk);
    }
}

/// `<https://…>; rel="next"` (RFC 8288).
fn next_page(headers: &HeaderMap, url: &Url) -> Option<Url> {
    let links = headers.get(LINK)?.to_str().ok()?;
    let next = links.split(',').find(|link| link.contains("rel=\"next\""))?;
    let address = next.split_once('<')?.1.split_once('>')?.0;
    url.join(address).ok()
}

/// Files by the model that they belong to, each with its number.
type Grouped = BTreeMap<String, Vec<(u32, Entry)>>;

fn offers_of(web: &Web, repository: &str, revision: &str, entries: Vec<Entry>) -> Result<Offers, Fault> {
    let files: Vec<Entry> = entries.into_iter().filter(|entry| entry.kind != "directory").collect();
    let all = files.len();
    let ggufs: Vec<Entry> = files.into_iter().filter(|entry| is_gguf(&entry.path)).collect();
    let other_files = u32::try_from(all - ggufs.len()).unwrap_or(u32::MAX);
    let mut offers = Vec::new();
    for (name, files) in grouped(ggufs) {
        // A model without all of its files can't be run; it is not offered.
        let count = split_name(&name).map_or(1, |split| split.count as usize);
        let in_order = files.iter().zip(1..).all(|((number, _), at)| *number == at);
        if files.len() != count || !in_order {
            continue;
        }
        let files = files.into_iter().map(|(_, entry)| remote(web, repository, revision, entry));
        let files = files.collect::<Result<Vec<RemoteFile>, Fault>>()?;
        let (quantisation, projector) = (quantisation_of(&name), is_projector(&name));
        offers.push(Offer { name, quantisation, projector, files });
    }
    offers.sort_by_key(|offer| (offer.projector, offer.size().unwrap_or(u64::MAX)));
    Ok(Offers {
        target: repository.to_owned(),
        host: String::new(),
        revision: revision.to_owned(),
        offers,
        other_files,
        wanted: Wanted::Any,
    })
}

fn grouped(ggufs: Vec<Entry>) -> Grouped {
    let mut models = Grouped::new();
    for entry in ggufs {
        let (key, number) = match split_name(&entry.path) {
            Some(split) => (split_file(split.prefix, 1, split.count), split.number),
            None => (entry.path.clone(), 1),
        };
        models.entry(key).or_default().push((number, entry));
    }
    for files in models.values_mut() {
        files.sort_by_key(|(number, _)| *number);
        // A list may name a file twice.
        files.dedup_by_key(|(number, _)| *number);
    }
    models
}

/// Where a repository's file is on this hub, whichever one listed it; none when it is there already, or of no hub.
pub(crate) fn moved(web: &Web, repository: &str, url: &Url) -> Option<Url> {
    if repository.contains("://") {
        return None;
    }
    let (_, rest) = url.as_str().split_once(&format!("/{repository}/resolve/"))?;
    at_hub(web, &format!("{repository}/resolve/{rest}")).ok().filter(|there| there != url)
}

fn remote(web: &Web, repository: &str, revision: &str, entry: Entry) -> Result<RemoteFile, Fault> {
    let path = format!("{repository}/resolve/{}/{}", encoded_segment(revision), encoded(&entry.path));
    let (oid, lfs_size) = entry.lfs.map_or((None, None), |lfs| (lfs.oid, lfs.size));
    Ok(RemoteFile {
        name: safe_name(&entry.path),
        url: at_hub(web, &path)?,
        size: lfs_size.or(entry.size),
        sha256: oid.as_deref().and_then(sha256),
    })
}

fn at_hub(web: &Web, path: &str) -> Result<Url, Fault> {
    let mut base = web.hub().clone();
    if !base.path().ends_with('/') {
        base.set_path(&format!("{}/", base.path()));
    }
    base.join(path).map_err(|_| Fault::Senseless { host: host_of(web.hub()), what: "no address".into() })
}

fn encoded(path: &str) -> String {
    utf8_percent_encode(path, PATH).to_string()
}

fn encoded_segment(text: &str) -> String {
    encoded(text).replace('/', "%2F")
}

/// Looks at an address without taking its file: the first bytes tell what it is.
async fn probe(web: &Web, url: &Url) -> Result<Offers, Fault> {
    let rest = Rest { from: 0, unless_changed: None };
    let what = url.path().rsplit('/').next().unwrap_or_default().to_owned();
    let mut reply = web.get(url, Some(&rest), &what).await?;
    let headers = reply.response.headers().clone();
    let host = reply.host;
    refuse_page(&headers, &host)?;
    let size = match reply.response.status() {
        StatusCode::PARTIAL_CONTENT => total_of(&headers).or_else(|| reply.response.content_length()),
        _ => reply.response.content_length(),
    };
    let mut begin = Vec::new();
    while begin.len() < MAGIC.len() {
        match reply.response.chunk().await {
            Ok(Some(chunk)) => begin.extend_from_slice(&chunk[..chunk.len().min(64)]),
            Ok(None) => break,
            Err(error) => return Err(web.unreachable(url, &error)),
        }
    }
    check_magic(&begin, &host)?;
    let name = named_by(&headers)
        .unwrap_or_else(|| percent_encoding::percent_decode_str(&what).decode_utf8_lossy().into_owned());
    let name = safe_name(&name);
    let file =
        RemoteFile { name: name.clone(), url: url.clone(), size: reply.size.or(size), sha256: reply.sha256 };
    let mut shown = url.clone();
    shown.set_query(None);
    shown.set_fragment(None);
    let (quantisation, projector) = (quantisation_of(&name), is_projector(&name));
    Ok(Offers {
        target: shown.into(),
        host,
        revision: String::new(),
        offers: vec![Offer { name, quantisation, projector, files: vec![file] }],
        other_files: 0,
        wanted: Wanted::Any,
    })
}

/// What a GGUF file begins with.
const MAGIC: &[u8] = b"GGUF";

/// Refuses what is no model by its first bytes.
pub(crate) fn check_magic(begin: &[u8], host: &str) -> Result<(), Fault> {
    if begin.starts_with(MAGIC) {
        return Ok(());
    }
    let text = String::from_utf8_lossy(begin);
    Err(match text.trim_start_matches('\u{feff}').trim_start().starts_with('<') {
        true => Fault::Page { host: host.to_owned() },
        false => Fault::NoGguf { host: host.to_owned() },
    })
}

/// Refuses what says of itself that it is a page.
pub(crate) fn refuse_page(headers: &HeaderMap, host: &str) -> Result<(), Fault> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    match kind.to_ascii_lowercase().starts_with("text/html") {
        true => Err(Fault::Page { host: host.to_owned() }),
        false => Ok(()),
    }
}

/// The first byte and the size of the whole in `Content-Range: bytes 5-9/10`.
pub(crate) fn content_range(headers: &HeaderMap) -> Option<(u64, Option<u64>)> {
    let text = headers.get(CONTENT_RANGE)?.to_str().ok()?.trim().strip_prefix("bytes ")?;
    let (range, total) = text.split_once('/')?;
    let first = range.split_once('-')?.0.trim().parse().ok()?;
    Some((first, total.trim().parse().ok()))
}

fn total_of(headers: &HeaderMap) -> Option<u64> {
    content_range(headers)?.1
}

/// The name in `Content-Disposition`, the extended one first (RFC 6266, section 4.3).
fn named_by(headers: &HeaderMap) -> Option<String> {
    let text = String::from_utf8_lossy(headers.get(CONTENT_DISPOSITION)?.as_bytes()).into_owned();
    let value = |key: &str| {
        text.split(';')
            .map(str::trim)
            .find_map(|part| part.strip_prefix(key))
            .map(|value| value.trim_matches('"'))
    };
    let extended = value("filename*=")
        .and_then(|value| value.rsplit_once("''"))
        .map(|(_, encoded)| percent_encoding::percent_decode_str(encoded).decode_utf8_lossy().into_owned());
    extended.or_else(|| value("filename=").map(str::to_owned)).filter(|name| !name.is_empty())
}
