//! What `/api` takes and gives beyond `/v1`, described for the document at `/openapi.json`.
//!
//! Invariant: as in `v1::shape`: nothing is read or written with these types; tests hold what is served to them.
#![expect(dead_code, reason = "types that are only described")]

pub mod answer;
pub mod approval;
pub mod event;
pub mod frame;
pub mod session;
pub mod tool;

use utoipa::PartialSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

/// One object with the fields of two: joined with `allOf`, neither of them could be closed.
fn joined<A: PartialSchema, B: PartialSchema>(description: &str) -> RefOr<Schema> {
    let (mut one, more) = (A::schema(), B::schema());
    if let (RefOr::T(Schema::Object(one)), RefOr::T(Schema::Object(more))) = (&mut one, more) {
        one.properties.extend(more.properties);
        one.required.extend(more.required);
        one.description = Some(description.to_owned());
    }
    one
}
