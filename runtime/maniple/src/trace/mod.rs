//! Traces: stretches of launches that repeat.

// Until launches are traced, only its tests use it.
#[allow(dead_code, unused_imports)]
mod mining;
