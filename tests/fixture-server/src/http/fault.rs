//! What goes wrong with an answer over HTTP.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};

use super::message::{head, respond};

/// One thing that goes wrong, a number of times.
pub struct Fault {
    kind: String,
    /// The method that it is for; any when empty.
    on: String,
    times: u64,
    /// Where a redirect leads, or the status of `status`.
    to: Value,
}

impl Fault {
    /// `{"fault": KIND, "on": METHOD, "times": N, "to": …}`; none for anything else, which means no fault any more.
    pub fn read(order: &Value) -> Option<Self> {
        Some(Self {
            kind: order["fault"].as_str()?.to_owned(),
            on: order["on"].as_str().unwrap_or_default().to_owned(),
            times: order["times"].as_u64().unwrap_or(u64::MAX),
            to: order["to"].clone(),
        })
    }

    /// Answers wrongly; false when the connection is of no use any more.
    pub fn show(&self, mut stream: &TcpStream, id: &Value) -> bool {
        let result = json!({"jsonrpc": "2.0", "id": id, "result": {"content": []}}).to_string();
        let html = b"<!doctype html><html><h1>Bad Gateway</h1></html>";
        let json_type = ("content-type", "application/json");
        let sse = [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")];
        match self.kind.as_str() {
            "silence" => forever(),
            "reset" => false,
            "stall-stream" => stream.write_all(&head(200, sse)).is_ok() && forever(),
            "stall-json" => {
                let begun = [&head(200, [json_type, ("content-length", "1000")])[..], b"{\"json"].concat();
                stream.write_all(&begun).is_ok() && forever()
            }
            "drip" => {
                let _ = stream.write_all(&head(200, [json_type, ("content-length", "100000")]));
                while stream.write_all(b" ").is_ok() {
                    std::thread::sleep(Duration::from_millis(100));
                }
                false
            }
            "endless" => {
                let _ = stream.write_all(&head(200, sse));
                while stream.write_all(b"7\r\n: dot\n\n\r\n").is_ok() {
                    std::thread::sleep(Duration::from_millis(50));
                }
                false
            }
            "cut-stream" => {
                stream.write_all(&head(200, sse)).is_ok() && stream.write_all(b"0\r\n\r\n").is_ok()
            }
            "cut-json" => {
                let begun = [&head(200, [json_type, ("content-length", "1000")])[..], b"{\"json"].concat();
                let _ = stream.write_all(&begun);
                false
            }
            "html-502" => respond(stream, 502, &[("content-type", "text/html")], html),
            "html-200" => respond(stream, 200, &[("content-type", "text/html")], html),
            "plain-type" => respond(stream, 200, &[("content-type", "text/plain")], result.as_bytes()),
            "no-type" => respond(stream, 200, &[], result.as_bytes()),
            "empty-200" => respond(stream, 200, &[json_type], b""),
            "accepted" => respond(stream, 202, &[], b""),
            "wrong-id" => {
                let other = json!({"jsonrpc": "2.0", "id": 987_654, "result": {"content": []}});
                respond(stream, 200, &[json_type], other.to_string().as_bytes())
            }
            "no-id-400" => {
                let error = json!({"jsonrpc": "2.0", "error": {"code": -32000, "message": "Bad Request"}});
                respond(stream, 400, &[json_type], error.to_string().as_bytes())
            }
            "redirect" => {
                let to = self.to.as_str().unwrap_or_default();
                respond(stream, 307, &[("location", to)], b"")
            }
            "status" => {
                let status = self.to.as_u64().and_then(|status| u16::try_from(status).ok()).unwrap_or(500);
                respond(stream, status, &[("retry-after", "0")], b"")
            }
            "status-then-stall" => {
                stream.write_all(&head(500, [("content-length", "50")])).is_ok() && forever()
            }
            "garbage" => {
                let _ = stream.write_all(b"\x00\x01\x02 what is this\r\n\r\n");
                false
            }
            kind => panic!("no fault {kind}"),
        }
    }
}

fn forever() -> bool {
    std::thread::sleep(Duration::from_secs(3_600));
    false
}

/// The fault for a request of this method, if there is one left.
pub fn due(faults: &Mutex<Vec<Fault>>, method: &str) -> Option<Fault> {
    let mut faults = faults.lock().expect("no panic");
    let fault =
        faults.iter_mut().find(|fault| fault.times > 0 && (fault.on.is_empty() || fault.on == method))?;
    fault.times -= 1;
    Some(Fault { kind: fault.kind.clone(), on: fault.on.clone(), times: 1, to: fault.to.clone() })
}
