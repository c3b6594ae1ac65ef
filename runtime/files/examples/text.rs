//! Text of sparse matrices read and written, beside SciPy, as ratios of one run:
//! `cargo run --release -p maniple-files --example text`. SciPy is asked through `MANIPLE_PYTHON`, or `python3`, with
//! as many threads.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Instant;

use maniple_files::{Entries, Parallel, matrix_market, tns};

/// Prints a name, and the medians of three times and of what processors spent.
const SCIPY: &str = "
import sys, time, scipy.io
def median(name, run):
    times, spent = [], []
    for _ in range(3):
        start, begin = time.perf_counter(), time.process_time()
        run()
        times.append(time.perf_counter() - start); spent.append(time.process_time() - begin)
    print(name, sorted(times)[1], sorted(spent)[1])
name, threads = sys.argv[1], int(sys.argv[2])
import threadpoolctl
with threadpoolctl.threadpool_limits(threads):
    median('read', lambda: scipy.io.mmread(name))
    matrix = scipy.io.mmread(name)
    median('write', lambda: scipy.io.mmwrite(name, matrix))
";

/// All processors.
struct Processors(usize);

impl Parallel for Processors {
    fn parts(&self) -> usize {
        self.0
    }

    fn run(&self, parts: usize, body: &(dyn Fn(usize) + Sync)) {
        std::thread::scope(|scope| {
            for part in 0..parts {
                scope.spawn(move || body(part));
            }
        });
    }
}

/// The seconds that processors have spent on this process, where the system tells.
fn spent() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks = text.rsplit(')').next().into_iter().flat_map(|rest| rest.split(' ').skip(12).take(2));
    ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn medians(mut run: impl FnMut()) -> (f64, f64) {
    let once = |_| {
        let (start, begin) = (Instant::now(), spent());
        run();
        (start.elapsed().as_secs_f64(), spent() - begin)
    };
    let (mut times, mut all): (Vec<f64>, Vec<f64>) = (0..3).map(once).unzip();
    times.sort_by(f64::total_cmp);
    all.sort_by(f64::total_cmp);
    (times[1], all[1])
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count: i64 = std::env::args().nth(1).map_or(Ok(4_000_000), |text| text.parse())?;
    let processors = Processors(std::thread::available_parallelism()?.get());
    let at = |entry: i64, factor: u64| (((entry as u64).wrapping_mul(factor) >> 20) % (count as u64 / 4)) as i64;
    let entries = Entries {
        coordinates: vec![
            (0..count).map(|entry| entry / 4).collect(),
            (0..count).map(|entry| at(entry, 0x9E37_79B9_7F4A_7C15)).collect(),
        ],
        values: (0..count).map(|entry| at(entry, 0xD6E8_FEB8_6659_FD93) as f64 / 1e5).collect::<Vec<f64>>(),
    };
    let folder = tempfile::tempdir()?;
    let name = folder.path().join("matrix.mtx");
    let rows = count as u64 / 4;
    let mut times = BTreeMap::new();
    times.insert(
        "write",
        medians(|| {
            let file = std::fs::File::create(&name).expect("the folder is there");
            let mut into = std::io::BufWriter::new(file);
            matrix_market::write_entries(&mut into, rows, rows, &entries, &processors).expect("there is room");
        }),
    );
    times.insert(
        "read",
        medians(|| {
            let text = std::fs::read(&name).expect("it was written");
            let read = matrix_market::read_entries::<f64>(&text, &processors).expect("it is right");
            assert!(read.1.values.len() == entries.values.len());
        }),
    );
    let mut lines = Vec::new();
    tns::write_lines(&mut lines, &entries, &processors)?;
    let tns =
        medians(|| assert!(tns::read_entries::<f64>(&lines, 1, None, &processors).is_ok_and(|read| read.1 == entries)));
    let bytes = std::fs::metadata(&name)?.len() as f64;
    println!(".tns read  {:6.0} MB/s", lines.len() as f64 / tns.0 / 1e6);
    let python = std::env::var("MANIPLE_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let output = Command::new(python).args(["-c", SCIPY]).arg(&name).arg(processors.0.to_string()).output()?;
    let told = String::from_utf8_lossy(&output.stdout);
    for (name, (time, spent)) in &times {
        print!(".mtx {name:5} {:6.0} MB/s", bytes / time / 1e6);
        let rival = told
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .map(|rest| rest.trim().split(' ').collect::<Vec<_>>());
        match rival.as_deref() {
            Some([other, others]) => {
                let (other, others): (f64, f64) = (other.parse()?, others.parse()?);
                println!(", {:5.2} times SciPy's; {:5.2} by what processors spent", other / time, others / spent);
            }
            _ => println!(),
        }
    }
    if told.is_empty() {
        println!(
            "no SciPy: {}",
            String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or("it is not installed")
        );
    }
    Ok(())
}
