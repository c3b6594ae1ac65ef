//! A picture of how a statement runs: what each processor holds of each tensor, and what processors send each other in
//! each step.

use std::fmt::Write;

use maniple_tensor::choose::Choices;
use maniple_tensor::placement::{self, Placed};
use maniple_tensor::rectangle::Rectangle;
use maniple_tensor::traffic;

use super::problem::TensorProblem;
use super::report::text;

/// Draws for each statement all tensors of the algorithm beside one another, and its messages below, as SVG.
#[must_use]
pub fn draw(problem: &TensorProblem, choices: &Choices) -> String {
    let mut rows = Vec::new();
    for choice in choices.all() {
        let mut pictures = Vec::new();
        for (tensor, placement) in &choice.algorithm.placements {
            // The algorithm's placements fit its grid.
            if let Ok(placed) = Placed::new(placement, &Rectangle::whole(tensor.dimensions()), &choice.machine) {
                pictures.push(placement::draw(&placed, &format!("{tensor}: who holds what at the beginning")));
            }
        }
        rows.extend([pictures, vec![traffic::draw(&choice.traffic, "Messages")]]);
    }
    arranged(&rows, &format!("{}, by {}", text(&problem.program), choices.name()))
}

/// Rows of pictures.
pub(super) fn arranged(rows: &[Vec<String>], title: &str) -> String {
    let (mut inside, mut width, mut height) = (String::new(), 0.0_f64, 0.0);
    for row in rows {
        let (mut left, mut highest) = (0.0, 0.0_f64);
        for picture in row {
            let Some((across, down)) = size(picture) else { continue };
            let placed = format!("<svg x=\"{left:.0}\" y=\"{height:.0}\" width=\"{across:.0}\" height=\"{down:.0}\"");
            inside.push_str(&picture.replacen("<svg xmlns=\"http://www.w3.org/2000/svg\"", &placed, 1));
            (left, highest) = (left + across, highest.max(down));
        }
        (width, height) = (width.max(left), height + highest);
    }
    let mut svg = String::new();
    let title = title.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    // Writing to a string succeeds.
    let _ = write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\">\n\
         <title>{title}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{inside}</svg>\n"
    );
    svg
}

/// Width and height of a picture, as it says itself.
fn size(picture: &str) -> Option<(f64, f64)> {
    let view = picture.split_once("viewBox=\"0 0 ")?.1.split_once('"')?.0;
    let (width, height) = view.split_once(' ')?;
    Some((width.parse().ok()?, height.parse().ok()?))
}
