//! Local models: GGUF files run by llama.cpp in a child process.
//!
//! Invariant: llama.cpp never computes inside the application's own process; what it does to the worker is an
//! error of one reply.

pub mod gguf;
