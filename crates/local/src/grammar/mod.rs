//! Grammars (GBNF) from the JSON Schemas of tools, as exact as a grammar can be.
//!
//! llama.cpp brings a converter too; it refuses a whole conversation over one odd schema, leaves out bounds of
//! numbers, loose patterns, excluded keys, and lets recursive schemas go deeper than any reader of JSON. What a
//! grammar cannot say (`not`, `if`, sums, unique items of any kind) is left open here and named, and the core
//! checks the arguments against the true schema afterwards.
//! Invariant: pure; every text of a grammar without an open point is valid against its schema. It may say less
//! than the schema allows: properties stand in the order of the schema, numbers have at most 15 digits.

mod array;
mod bind;
mod choice;
mod flat;
mod gbnf;
mod listed;
mod number;
mod object;
mod pattern;
mod pythonic;
mod schema;
mod string;
mod tagged;

pub(crate) use bind::{Bound, bind, one_json_call, rule_name, tagged_json_calls};
pub(crate) use pythonic::{pythonic_calls, pythonic_trigger};
pub(crate) use schema::for_value;
pub(crate) use tagged::{TAGGED_ARGUMENT, bind_tagged, with_plain_types};

#[cfg(test)]
use {
    gbnf::Rules,
    schema::{Compiled, compile},
};

#[cfg(test)]
mod tests;
