//! The tasks of the solver.

use maniple::prelude::*;

use super::kernels::dot;
use super::rows::Row;
use super::scalars::{IterationState, IterationStep, Products};

/// The bytes that a system takes in regions.
#[must_use]
pub fn bytes(rows: u64, entries: u64) -> u64 {
    let index = if entries > i32::MAX as u64 { size_of::<i64>() } else { size_of::<i32>() };
    let row = index + 6 * size_of::<f64>();
    let entry = index + size_of::<f64>();
    rows.saturating_mul(row as u64).saturating_add(entries.saturating_mul(entry as u64)).saturating_add(index as u64)
}

/// Sets the vectors that are known: the right-hand side is all ones. The diagonal is replaced by its inverse; returns
/// the first row whose diagonal entry is not positive, as it is in all positive definite matrices, and the entry.
#[task(leaf)]
pub fn load(
    #[writes(inverse_diagonal)]
    #[discards(b, x)]
    rows: Piece<Row>,
) -> Option<(i64, f64)> {
    let mut refused = None;
    for row in rows.points() {
        let diagonal = rows.inverse_diagonal[row];
        if diagonal <= 0.0 {
            refused = refused.or(Some((row[0], diagonal)));
        }
        rows.inverse_diagonal[row] = 1.0 / diagonal;
        rows.b[row] = 1.0;
        rows.x[row] = 0.0;
    }
    refused
}

/// Returns this piece's part of p . q.
#[task(leaf)]
pub fn curvature(#[reads(p, q)] rows: Piece<Row>) -> f64 {
    rows.rows().map(|part| dot(&rows.p.span(part), &rows.q.span(part))).sum()
}

/// r = b - q, where q is A x, and the first direction; returns this piece's part of the inner products.
#[task(leaf)]
pub fn start(
    #[reads(q, b, inverse_diagonal)]
    #[discards(r, p)]
    rows: Piece<Row>,
) -> Products {
    let mut products = Products::default();
    for part in rows.rows() {
        let (q, b, inverse) = (rows.q.span(part), rows.b.span(part), rows.inverse_diagonal.span(part));
        let (mut r, mut p) = (rows.r.span_mut(part), rows.p.span_mut(part));
        for ((r, p), ((b, q), inverse)) in r.iter_mut().zip(p.iter_mut()).zip(b.iter().zip(&*q).zip(&*inverse)) {
            *r = b - q;
            *p = inverse * *r;
            products = products.and(Products { residual: *r * *r, inner: *r * *p });
        }
    }
    products
}

/// x += alpha p and r -= alpha q; returns this piece's part of the inner products.
#[task(leaf)]
pub fn advance(
    #[reads(p, q, inverse_diagonal)]
    #[writes(x, r)]
    rows: Piece<Row>,
    step: IterationStep,
) -> Products {
    let mut products = Products::default();
    for part in rows.rows() {
        let (p, q, inverse) = (rows.p.span(part), rows.q.span(part), rows.inverse_diagonal.span(part));
        let (mut x, mut r) = (rows.x.span_mut(part), rows.r.span_mut(part));
        for ((x, r), ((p, q), inverse)) in x.iter_mut().zip(r.iter_mut()).zip(p.iter().zip(&*q).zip(&*inverse)) {
            *x += step.alpha * p;
            *r -= step.alpha * q;
            products = products.and(Products { residual: *r * *r, inner: *r * *r * inverse });
        }
    }
    products
}

/// p = z + beta p, where z is the preconditioned residual.
#[task(leaf)]
pub fn turn(
    #[reads(r, inverse_diagonal)]
    #[writes(p)]
    rows: Piece<Row>,
    state: IterationState,
) {
    for part in rows.rows() {
        let (r, inverse, mut p) = (rows.r.span(part), rows.inverse_diagonal.span(part), rows.p.span_mut(part));
        for (p, (r, inverse)) in p.iter_mut().zip(r.iter().zip(&*inverse)) {
            *p = inverse * r + state.beta * *p;
        }
    }
}
