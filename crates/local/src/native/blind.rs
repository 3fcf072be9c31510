//! In place of `sight` in builds without the feature `vision`: nothing is ever seen.
//!
//! Invariant: no value of these types but options exists.

use std::convert::Infallible;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;

use super::{Context, DecodeError, NativeError};

#[derive(Clone, Copy, Debug)]
#[expect(dead_code, reason = "read by the other build")]
pub(crate) struct SightOptions {
    pub(crate) threads: u32,
    pub(crate) gpu: bool,
}

pub(crate) struct Sight<'model>(Infallible, PhantomData<&'model LlamaModel>);

#[expect(dead_code, reason = "made by the other build")]
pub(crate) enum Piece {
    Tokens(Vec<LlamaToken>),
    Pixels(Pixels),
}

pub(crate) struct Pixels {
    pub(crate) places: usize,
    pub(crate) positions: usize,
}

pub(crate) struct Seen;

impl<'model> Sight<'model> {
    pub(crate) fn load(
        _: &Path,
        _: &'model LlamaModel,
        _: SightOptions,
        _: &'static AtomicBool,
    ) -> Result<Self, NativeError> {
        Err(NativeError("this build does not see images (feature `vision`)".to_owned()))
    }

    pub(crate) fn needs_whole_images(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn pieces(&self, _: &[u8]) -> Result<Vec<Piece>, NativeError> {
        match self.0 {}
    }

    pub(crate) fn look(&mut self, _: &Pixels) -> Result<Option<Seen>, NativeError> {
        match self.0 {}
    }

    pub(crate) fn put(
        &mut self,
        _: &Seen,
        _: &Pixels,
        _: &mut Context<'_>,
        _: i32,
        _: usize,
    ) -> Result<(), DecodeError> {
        match self.0 {}
    }
}
