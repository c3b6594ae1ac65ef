//! Packing and conversion beside SciPy's, as ratios of one run:
//! `cargo run --release -p maniple-tensor --example conversions`. SciPy is asked through `MANIPLE_PYTHON`, or
//! `python3`.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Instant;

use maniple_tensor::format::Format;
use maniple_tensor::storage::{Duplicates, EntryList, SparseTensor, pack};

/// Prints a name, and the medians of five times and of the processors' time for each conversion.
const SCIPY: &str = "
import sys, time, numpy as np, scipy.sparse as sp
def median(name, run):
    times, spent = [], []
    for _ in range(5):
        start, begin = time.perf_counter(), time.process_time()
        run()
        times.append(time.perf_counter() - start); spent.append(time.process_time() - begin)
    print(name, sorted(times)[2], sorted(spent)[2])
n, k = int(sys.argv[1]), int(sys.argv[2])
rng = np.random.default_rng(1)
rows = np.repeat(np.arange(n * n, dtype=np.int32), 8)[rng.permutation(n * n * 8)]
coo = sp.coo_matrix((rng.random(rows.size), (rows, rng.integers(0, n * n, rows.size, dtype=np.int32))), shape=(n * n, n * n))
median('uniform:coo:csr', lambda: coo.tocsr())
csr = coo.tocsr(); del coo
median('uniform:csr:csc', lambda: csr.tocsc())
del csr
m = k * k
diagonals = [np.full(m, -1.0), np.full(m, -1.0), np.full(m, 4.0), np.full(m, -1.0), np.full(m, -1.0)]
poisson = sp.dia_matrix((np.array(diagonals), [-k, -1, 0, 1, k]), shape=(m, m)).tocsr()
median('poisson:csr:csc', lambda: poisson.tocsc())
median('poisson:csr:dia', lambda: poisson.todia())
median('poisson:csr:bcsr:2x2', lambda: poisson.tobsr((2, 2)))
median('poisson:csr:coo', lambda: poisson.tocoo())
";

/// The seconds that processors have spent on this process, where the system tells.
fn spent() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks = text.rsplit(')').next().into_iter().flat_map(|rest| rest.split(' ').skip(12).take(2));
    ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// The medians of five times and of what processors spent.
fn medians<T>(prepare: impl Fn() -> T, run: impl Fn(T)) -> (f64, f64) {
    let once = |_| {
        let given = prepare();
        let (start, begin) = (Instant::now(), spent());
        run(given);
        (start.elapsed().as_secs_f64(), spent() - begin)
    };
    let (mut times, mut all): (Vec<f64>, Vec<f64>) = (0..5).map(once).unzip();
    times.sort_by(f64::total_cmp);
    all.sort_by(f64::total_cmp);
    (times[2], all[2])
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let argument = |number, usual| std::env::args().nth(number).map_or(Ok(usual), |text| text.parse::<i64>());
    let (n, k) = (argument(1, 1414)?, argument(2, 2000)?);
    let mut times = BTreeMap::new();
    let mut random = fastrand::Rng::with_seed(1);
    let rows = n * n;
    let mut order: Vec<i64> = (0..8 * rows).map(|entry| entry / 8).collect();
    random.shuffle(&mut order);
    let columns: Vec<i64> = order.iter().map(|_| random.i64(0..rows)).collect();
    let values: Vec<f64> = order.iter().map(|_| random.f64()).collect();
    let shuffled = EntryList::of(vec![order, columns], values);
    let csr: Format = "csr".parse()?;
    let packed = |entries| pack(&csr, &[rows, rows], 0.0, entries, Duplicates::Sum).map(|packed| packed.tensor);
    let time = medians(|| shuffled.clone(), |entries| drop(packed(entries)));
    times.insert("uniform:coo:csr".to_owned(), (time, shuffled.len()));
    let uniform = packed(shuffled)?;
    let mut convert = |name: &str, tensor: &SparseTensor<f64>, to: &str| {
        let format: Format = to.parse()?;
        let time = medians(|| (), |()| drop(tensor.convert(&format)));
        times.insert(format!("{name}:csr:{to}"), (time, tensor.values().len()));
        Ok::<(), Box<dyn std::error::Error>>(())
    };
    convert("uniform", &uniform, "csc")?;
    drop(uniform);
    let mut entries = EntryList::new(2);
    for row in 0..k * k {
        for (column, value) in [(row - k, -1.0), (row - 1, -1.0), (row, 4.0), (row + 1, -1.0), (row + k, -1.0)] {
            if (0..k * k).contains(&column) {
                entries.push(&[row, column], value);
            }
        }
    }
    let poisson = pack(&csr, &[k * k, k * k], 0.0, entries, Duplicates::Sum)?.tensor;
    for to in ["csc", "dia", "bcsr:2x2", "ell", "coo"] {
        convert("poisson", &poisson, to)?;
    }
    drop(poisson);
    let python = std::env::var("MANIPLE_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let output = Command::new(python).args(["-c", SCIPY, &n.to_string(), &k.to_string()]).output()?;
    let told = String::from_utf8_lossy(&output.stdout);
    let rival = |line: &'_ str| {
        let mut words = line.split(' ').map(str::to_owned);
        let name = words.next()?;
        Some((name, (words.next()?.parse::<f64>().ok()?, words.next()?.parse::<f64>().ok()?)))
    };
    let rivals: BTreeMap<String, (f64, f64)> = told.lines().filter_map(rival).collect();
    let threads = std::thread::available_parallelism()?.get() as f64;
    for (name, ((time, spent), entries)) in &times {
        print!("{name:20} {:6.1} million entries/s", *entries as f64 / time / 1e6);
        match rivals.get(name) {
            // On a machine that does other things too, the second number tells more.
            Some((other, others)) => {
                println!(
                    ", {:5.2} times SciPy's; {:5.2} by what processors spent",
                    other / time,
                    others / (spent / threads)
                );
            }
            None => println!(),
        }
    }
    if rivals.is_empty() {
        println!(
            "no SciPy: {}",
            String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or("it is not installed")
        );
    }
    Ok(())
}
