//! What repeats in a stream of tokens.

mod periods;
mod repeats;
mod suffix_array;
