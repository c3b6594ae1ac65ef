//! Regions with fields, and tasks that declare which fields they read and write.
//!
//! Run it with `cargo run -p maniple --example fields`.

use maniple::prelude::*;

/// The columns of a region. The struct itself is never stored.
#[derive(Fields)]
struct Particle {
    position: f64,
    velocity: f64,
    mass: f64,
}

/// Moves particles. It has no way to touch their mass.
#[task(leaf)]
fn drift(
    #[reads(velocity)]
    #[writes(position)]
    particles: Piece<Particle>,
    time: f64,
) {
    for particle in particles.points() {
        particles.position[particle] += time * particles.velocity[particle];
    }
}

#[task(leaf)]
fn momentum(#[reads(velocity, mass)] particles: Piece<Particle>) -> f64 {
    particles.points().map(|particle| particles.mass[particle] * particles.velocity[particle]).sum()
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().build()?;
    runtime.run(async |cx| {
        let particles = cx.region::<Particle>(100)?; // all values are zero
        cx.fill(&particles, Particle::velocity, 2.0)?;
        cx.fill(&particles, Particle::mass, 0.5)?;

        cx.launch(drift(&particles, 3.0));
        let momentum = cx.launch(momentum(&particles)); // beside `drift`, as it needs none of what that writes
        let position = cx.map_read(&particles, Particle::position).await?[42];
        println!("particle 42 is at {position}, the momentum of all is {}", momentum.clone().await?);
        assert_eq!((position, momentum.await?), (6.0, 100.0));
        Ok(())
    })
}
