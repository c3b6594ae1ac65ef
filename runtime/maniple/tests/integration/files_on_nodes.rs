//! Files that are attached on several nodes: read and written in the order of the program, and what one node cannot do
//! all are told.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use maniple::machine::NodeId;
use maniple::net::loopback::Network;
use maniple::prelude::*;
use maniple::simulation::{Disk, Simulation};
use maniple::{AnyPoint, File, Machine};

#[derive(Fields)]
struct Cell {
    value: i64,
}

#[task(leaf)]
fn sum(#[reads(value)] cells: Piece<Cell>) -> i64 {
    cells.points().map(|point| cells.value[point]).sum()
}

#[task(leaf)]
fn add(#[writes(value)] cells: Piece<Cell>, what: i64) {
    cells.points().for_each(|point| cells.value[point] += what);
}

#[task(leaf)]
fn clear(#[discards(value)] cells: Piece<Cell>) {
    cells.points().for_each(|point| cells.value[point] = 0);
}

/// A folder of a test's own, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("files-on-nodes-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs a program on so many nodes of this process. Returns the outcome of each node.
fn on_nodes<T: Send>(nodes: usize, program: impl AsyncFn(&Context, usize) -> Result<T> + Sync) -> Vec<Result<T>> {
    let network = Network::seeded(nodes, nodes as u64, 10);
    let _pump = network.pump();
    let (network, program) = (&network, &program);
    let run = |node: usize| {
        let builder = Runtime::builder().machine(Machine::uniform(1, 1 << 20)).workers(1);
        let runtime = builder.network(network.node(NodeId(node as u16))).build()?;
        runtime.run(async |cx| program(cx, node).await)
    };
    std::thread::scope(|scope| {
        let nodes: Vec<_> = (0..nodes).map(|node| scope.spawn(move || run(node))).collect();
        nodes.into_iter().map(|node| node.join().unwrap()).collect()
    })
}

fn bytes_of(values: impl IntoIterator<Item = i64>) -> Vec<u8> {
    values.into_iter().flat_map(i64::to_ne_bytes).collect()
}

fn values_of(path: &Path) -> Vec<i64> {
    fs::read(path).unwrap().chunks_exact(8).map(|value| i64::from_ne_bytes(value.try_into().unwrap())).collect()
}

#[test]
fn a_file_is_written_when_all_nodes_have_read_it() {
    let folder = Folder::new();
    for is_apart in [false, true] {
        let path = folder.path().join("file");
        fs::write(&path, bytes_of(1..=8)).unwrap();
        // What node 1 waits for before it attaches the file.
        let (go, wait) = std::sync::mpsc::channel();
        let (go, wait) = (Mutex::new(go), Mutex::new(wait));
        let seen = on_nodes(2, async |cx, node| {
            let (cells, others) = (cx.region::<Cell>(8)?, cx.region::<Cell>(8)?);
            let halves = cells.partition(2).equal()?;
            if node == 1 {
                wait.lock().unwrap().recv().unwrap();
            }
            let file = File::raw(&path);
            let read =
                cx.attach_file(&cells, Cell::value, if is_apart { file.clone() } else { file.clone().read_write() })?;
            let sums = cx.index_launch(2, sum(&halves));
            let done = if is_apart {
                // Another attachment writes it.
                let written = cx.attach_file(&others, Cell::value, file.write_only())?;
                drop(cx.detach_file(read)?);
                cx.detach_file(written)?
            } else {
                cx.launch(clear(&cells));
                cx.detach_file(read)?
            };
            if node == 0 {
                // If nothing waits for node 1, it is soon written.
                (0..2000).take_while(|_| values_of(&path)[0] == 1).for_each(|_| std::thread::yield_now());
                go.lock().unwrap().send(()).unwrap();
            }
            let sums = sums.all().await?;
            done.await?;
            Ok(sums)
        });
        assert!(seen.into_iter().all(|sums| sums.unwrap() == [10, 26]));
        assert_eq!(values_of(&path), [0; 8]);
    }
}

#[test]
fn a_file_that_is_written_and_attached_again_is_whole_on_all_nodes() {
    let folder = Folder::new();
    let path = folder.path().join("file");
    fs::write(&path, bytes_of([0; 8])).unwrap();
    let seen = on_nodes(3, async |cx, _| {
        let cells = cx.region::<Cell>(8)?;
        let quarters = cells.partition(4).equal()?;
        let mut seen = Vec::new();
        for turn in 0..12 {
            let file = File::raw(&path);
            let attached =
                cx.attach_file(&cells, Cell::value, if turn % 3 == 2 { file.create() } else { file.read_write() })?;
            cx.index_launch(4, add(&quarters, turn));
            seen.push(cx.index_launch(4, sum(&quarters)).reduce(Sum));
            drop(cx.detach_file(attached)?);
        }
        let mut sums = Vec::new();
        for sum in seen {
            sums.push(sum.await?);
        }
        Ok(sums)
    });
    let mut value = 0;
    let expected: Vec<i64> = (0..12)
        .map(|turn| {
            value = if turn % 3 == 2 { turn } else { value + turn };
            8 * value
        })
        .collect();
    seen.into_iter().for_each(|sums| assert_eq!(sums.unwrap(), expected));
    assert_eq!(values_of(&path), [value; 8]);
}

/// Goes on, on each node, after an outcome that is a failure or not. Returns the values that the node sees then.
async fn go_on(cx: &Context, cells: &Region<Cell>, outcome: Result<()>) -> Result<Vec<i64>> {
    cx.fill(cells, Cell::value, if outcome.is_ok() { 1 } else { 2 })?;
    Ok(cx.map_read(cells, Cell::value).await?.to_vec())
}

#[test]
fn a_file_that_one_node_cannot_open_fails_on_all() {
    let folder = Folder::new();
    let there = folder.path().join("there");
    fs::write(&there, bytes_of(0..8)).unwrap();
    type Of = fn(PathBuf) -> File;
    let kinds: [Of; 4] = [
        |path| File::raw(path),
        |path| File::raw(path).read_write(),
        |path| File::raw(path).write_only(),
        |path| File::raw(path.join("file")).create(),
    ];
    for (kind, lacking) in kinds.into_iter().zip([1, 1, 1, 0]) {
        let seen = on_nodes(2, async |cx, node| {
            let cells = cx.region::<Cell>(8)?;
            let path = if node == lacking { folder.path().join("missing") } else { there.clone() };
            let file = cx.attach_file(&cells, Cell::value, kind(path))?;
            let outcome = cx.detach_file(file)?.await;
            assert!(outcome.is_err(), "node {node}");
            go_on(cx, &cells, outcome).await
        });
        seen.into_iter().for_each(|values| assert_eq!(values.unwrap(), [2; 8]));
    }
}

#[test]
fn a_file_that_one_node_cannot_write_fails_on_all() {
    let folder = Folder::new();
    let (path, other) = (folder.path().join("file"), folder.path().join("other"));
    let replaced = AtomicBool::new(false);
    fs::write(&path, bytes_of(0..8)).unwrap();
    fs::write(&other, bytes_of(0..8)).unwrap();
    let seen = on_nodes(2, async |cx, node| {
        let cells = cx.region::<Cell>(8)?;
        let file = cx.attach_file(&cells, Cell::value, File::raw(&path).read_write())?;
        cx.launch(add(&cells, 1)).await?;
        if node == 0 && !replaced.swap(true, Ordering::Relaxed) {
            fs::rename(&other, &path).unwrap();
        }
        let outcome = cx.detach_file(file)?.await;
        assert!(outcome.is_err(), "node {node}");
        go_on(cx, &cells, outcome).await
    });
    seen.into_iter().for_each(|values| assert_eq!(values.unwrap(), [2; 8]));
    assert_eq!(values_of(&path), [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn memory_that_does_not_suit_one_node_is_refused_on_all_which_may_go_on() {
    let seen = on_nodes(2, async |cx, _| {
        let cells = cx.region::<Cell>(8)?;
        let halves = cells.partition(2).equal()?;
        let vector = |color: AnyPoint| vec![5; if color.coords()[0] == 1 { 3 } else { 4 }];
        let outcome = cx.attach_pieces(&halves, Cell::value, vector).map(drop);
        assert!(outcome.is_err());
        go_on(cx, &cells, outcome).await
    });
    seen.into_iter().for_each(|values| assert_eq!(values.unwrap(), [2; 8]));
}

/// One step of a program, which uses one of its files.
#[derive(Clone, Copy, Debug)]
struct Step {
    file: usize,
    access: u8,
    in_pieces: bool,
    is_awaited: bool,
    what: i64,
}

impl Step {
    fn random(random: &mut fastrand::Rng) -> Self {
        let (file, access, what) = (random.usize(..2), random.u8(..4), random.i64(1..100));
        Self { file, access, in_pieces: random.bool(), is_awaited: random.bool(), what }
    }

    fn of(self, folder: &Path) -> File {
        let file = File::raw(folder.join(self.file.to_string()));
        match self.access {
            0 => file,
            1 => file.read_write(),
            2 => file.write_only(),
            _ => file.create(),
        }
    }

    /// The value that is seen after the step, and the value that the file holds then.
    fn applied(self, value: i64) -> (i64, i64) {
        let seen = self.what + if self.access < 2 { value } else { 0 };
        (seen, if self.access == 0 { value } else { seen })
    }
}

/// Attaches files to two regions, changes them, and writes them.
async fn use_files(cx: &Context, folder: &Path, steps: &[Step]) -> Result<Vec<i64>> {
    let regions = [cx.region::<Cell>(8)?, cx.region::<Cell>(8)?];
    let halves = [regions[0].partition(2).equal()?, regions[1].partition(2).equal()?];
    let mut seen = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let (cells, halves) = (&regions[number % 2], &halves[number % 2]);
        let change = || {
            cx.index_launch(2, add(halves, step.what));
            cx.index_launch(2, sum(halves)).reduce(Sum)
        };
        if step.in_pieces {
            let attached = cx.attach_file_pieces(halves, Cell::value, step.of(folder))?;
            seen.push(change());
            cx.detach_file_pieces(attached).await?;
            continue;
        }
        let attached = cx.attach_file(cells, Cell::value, step.of(folder))?;
        seen.push(change());
        let detached = cx.detach_file(attached)?;
        if step.is_awaited {
            detached.await?;
        }
    }
    let mut sums = Vec::new();
    for sum in seen {
        sums.push(sum.await?);
    }
    cx.execution_fence().await?;
    Ok(sums)
}

/// Runs a program of a seed on so many nodes, of which one has such a disk. Whether it went well.
fn simulate(seed: u64, nodes: usize, disk: Option<(usize, Disk)>) -> bool {
    let mut random = fastrand::Rng::with_seed(seed);
    let steps: Vec<Step> = (0..random.usize(1..6)).map(|_| Step::random(&mut random)).collect();
    let folder = Folder::new();
    (0..2).for_each(|file| fs::write(folder.path().join(file.to_string()), bytes_of([0; 8])).unwrap());
    let network = Network::seeded(nodes, seed, seed % 20);
    let mut simulation = Simulation::new(seed).network(&network);
    let answers: Vec<_> = (0..nodes)
        .map(|node| {
            let (transport, folder, steps) =
                (network.node(NodeId(node as u16)), folder.path().to_owned(), steps.clone());
            simulation.thread(format!("node {node}"), move || {
                let builder = Runtime::builder().machine(Machine::uniform(1, 1 << 20)).workers(1);
                let builder = if nodes > 1 { builder.network(transport) } else { builder };
                builder.build().unwrap().run(async |cx| use_files(cx, &folder, &steps).await)
            })
        })
        .collect();
    if let Some((node, disk)) = disk {
        simulation.disk(&answers[node], disk);
    }
    let report =
        simulation.run().unwrap_or_else(|hang| panic!("seed {seed}, {nodes} nodes, {disk:?}, {steps:?}: {hang}"));
    assert!(report.left.is_empty(), "seed {seed}: threads are left: {:?}", report.left);
    let mut values = [0; 2];
    let expected: Vec<i64> = steps
        .iter()
        .map(|step| {
            let (seen, left) = step.applied(values[step.file]);
            values[step.file] = left;
            8 * seen
        })
        .collect();
    let outcomes: Vec<_> = answers.iter().map(|answer| answer.take().unwrap()).collect();
    let well = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert!(well == 0 || well == nodes, "seed {seed}, {nodes} nodes, {disk:?}, {steps:?}: {outcomes:?}");
    if well == 0 {
        assert!(
            disk.is_some_and(|(_, disk)| disk.sound_uses.or(disk.room).is_some()),
            "seed {seed}, {steps:?}: {outcomes:?}"
        );
        return false;
    }
    outcomes.iter().for_each(|seen| {
        assert_eq!(*seen.as_ref().unwrap(), expected, "seed {seed}, {nodes} nodes, {steps:?}");
    });
    for (file, value) in values.into_iter().enumerate() {
        assert_eq!(values_of(&folder.path().join(file.to_string())), [value; 8], "seed {seed}, {steps:?}");
    }
    true
}

#[test]
fn files_of_random_programs_are_read_and_written_in_program_order_in_every_order_of_turns() {
    for seed in 0..300 {
        let disk = Disk { turns: seed as u32 % 50, ..Disk::default() };
        assert!(simulate(seed, 1 + seed as usize % 4, Some((seed as usize % 7 % (1 + seed as usize % 4), disk))));
    }
}

#[test]
fn a_disk_that_breaks_or_fills_on_one_node_fails_the_program_on_all() {
    let mut failed = 0;
    for seed in 0..300 {
        let nodes = 1 + seed as usize % 4;
        let disk = match seed % 2 {
            0 => Disk { sound_uses: Some(seed / 2 % 12), turns: 5, ..Disk::default() },
            _ => Disk { room: Some(seed / 2 % 7 * 64), turns: 5, ..Disk::default() },
        };
        failed += u64::from(!simulate(seed, nodes, Some((seed as usize / 4 % nodes, disk))));
    }
    assert!(failed > 60, "{failed} programs have failed");
}
