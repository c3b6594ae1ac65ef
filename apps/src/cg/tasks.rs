//! The tasks of the solver.

use std::sync::Arc;

use maniple::prelude::*;

use super::kernels::{Block, dot};
use super::rows::{Entry, Row};
use super::scalars::{Products, State, Step};
use super::sparse::Sparse;

/// The bytes that a system takes in regions.
#[must_use]
pub fn bytes(rows: u64, entries: u64) -> u64 {
    let row = size_of::<Rect<1>>() + 6 * size_of::<f64>();
    let entry = size_of::<Ptr<Row>>() + size_of::<f64>();
    rows.saturating_mul(row as u64).saturating_add(entries.saturating_mul(entry as u64))
}

/// Says which entries each row has.
#[task(leaf)]
pub fn load_rows(#[discards(entries, inverse_diagonal, b, x)] rows: Piece<Row>, matrix: Arc<Sparse>) {
    for row in rows.points() {
        let number = row[0] as usize;
        let (first, end) = (matrix.starts()[number], matrix.starts()[number + 1]);
        rows.entries[row] = (first as i64..end as i64).into();
        rows.inverse_diagonal[row] = 1.0 / matrix.get(number as u32, number as u32);
        rows.b[row] = 1.0;
        rows.x[row] = 0.0;
    }
}

/// Copies entries of the matrix.
#[task(leaf)]
pub fn load_entries(#[discards(column, value)] entries: Piece<Entry>, matrix: Arc<Sparse>) {
    for entry in entries.points() {
        let number = entry[0] as usize;
        entries.column[entry] = Ptr::row(i64::from(matrix.columns()[number]));
        entries.value[entry] = matrix.values()[number];
    }
}

/// q = A p; returns this piece's part of p . q.
#[task(leaf)]
pub fn multiply(
    #[reads(entries, p)]
    #[discards(q)]
    rows: Piece<Row>,
    #[reads(column, value)] matrix: Piece<Entry>,
    #[reads(p)] needed: Piece<Row>,
) -> f64 {
    let matrix = Block::new(&matrix.column, &matrix.value);
    let mut curvature = 0.0;
    for part in rows.rows() {
        let (entries, p, mut q) = (rows.entries.span(part), rows.p.span(part), rows.q.span_mut(part));
        matrix.multiply(&entries, &needed.p, &mut q);
        curvature += dot(&p, &q);
    }
    curvature
}

/// r = b - A x, and the first direction; returns this piece's part of the inner products.
#[task(leaf)]
pub fn start(
    #[reads(entries, b, inverse_diagonal)]
    #[discards(r, p)]
    rows: Piece<Row>,
    #[reads(column, value)] matrix: Piece<Entry>,
    #[reads(x)] needed: Piece<Row>,
) -> Products {
    let matrix = Block::new(&matrix.column, &matrix.value);
    let mut products = Products::default();
    for part in rows.rows() {
        let (entries, b, inverse) = (rows.entries.span(part), rows.b.span(part), rows.inverse_diagonal.span(part));
        let (mut r, mut p) = (rows.r.span_mut(part), rows.p.span_mut(part));
        matrix.multiply(&entries, &needed.x, &mut r);
        for ((r, p), (b, inverse)) in r.iter_mut().zip(p.iter_mut()).zip(b.iter().zip(&*inverse)) {
            *r = b - *r;
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
    step: Step,
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
    state: State,
) {
    for part in rows.rows() {
        let (r, inverse, mut p) = (rows.r.span(part), rows.inverse_diagonal.span(part), rows.p.span_mut(part));
        for (p, (r, inverse)) in p.iter_mut().zip(r.iter().zip(&*inverse)) {
            *p = inverse * r + state.beta * *p;
        }
    }
}
