//! The token endpoint's side of RFC 7523: reads an assertion and verifies it.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use serde_json::Value;

/// Why an assertion is refused.
pub type Refusal = String;

/// The claims of an assertion that was signed with the key of this certificate (PKCS#1, DER).
pub fn verify(assertion: &str, public_key: &[u8]) -> Result<Value, Refusal> {
    let mut parts = assertion.split('.');
    let (Some(head), Some(claims), Some(signature), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err("not three parts".to_owned());
    };
    let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|error| error.to_string());
    let json =
        |part: &str| serde_json::from_slice::<Value>(&decode(part)?).map_err(|error| error.to_string());
    let header = json(head)?;
    if header["alg"] != "RS256" {
        return Err(format!("signed with {}", header["alg"]));
    }
    let signed = &assertion[..head.len() + 1 + claims.len()];
    UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, public_key)
        .verify(signed.as_bytes(), &decode(signature)?)
        .map_err(|_| "the signature is wrong".to_owned())?;
    json(claims)
}

/// The bytes of a PEM file.
pub fn der(pem: &str) -> Vec<u8> {
    let body: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
    STANDARD.decode(body.trim()).unwrap()
}
