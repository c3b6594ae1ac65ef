//! The profile viewer's page in a real browser: does it draw, can it be used, does it leave the network alone?
//!
//! Needs Chromium or Chrome: `apt-get install chromium`, or the program's path in the environment variable `CHROMIUM`.
//! Without one these tests say that they did not run; with `MANIPLE_NEEDS_BROWSER` set, as in `.ci/run`, they fail.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use maniple::profile::{
    Completeness, Header, Kind, Label, LabelId, OperationId, Record, Recording, Tag, Thread, ThreadRecording,
};
use maniple_apps::prof::model::Profile;
use maniple_apps::prof::page::page;
use maniple_apps::prof::together::{Together, together};
use serde_json::Value;

const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// The browser, if there is one.
fn browser() -> Option<PathBuf> {
    let found = match std::env::var_os("CHROMIUM") {
        Some(named) => Some(named.into()),
        None => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let places: Vec<PathBuf> = std::env::split_paths(&path).collect();
            let all = BROWSERS.iter().flat_map(|name| places.iter().map(move |place| place.join(name)));
            all.into_iter().find(|program| program.is_file())
        }
    };
    if found.is_none() {
        let needed = std::env::var_os("MANIPLE_NEEDS_BROWSER").is_some();
        assert!(!needed, "there is no browser, and MANIPLE_NEEDS_BROWSER is set: apt-get install chromium");
        eprintln!(
            "NOT RUN: the page was not tested, since there is no browser: apt-get install chromium, or set CHROMIUM"
        );
    }
    found
}

/// Visits a page with the browser; gives the document after its scripts ran, and the lines that they wrote on the
/// console.
fn visit(browser: &Path, address: &str, name: &str) -> (String, Vec<String>) {
    let data = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("browser-{name}"));
    let mut command = Command::new(browser);
    // Without a sandbox, which a container may not give; the page is our own.
    command.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]);
    command.args(["--window-size=1400,900", "--virtual-time-budget=20000", "--enable-logging=stderr", "--v=0"]);
    command.arg(format!("--user-data-dir={}", data.display())).args(["--dump-dom", address]);
    let output = command.stdin(Stdio::null()).output().expect("the browser can be started");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "the browser failed:\n{errors}");
    let console = errors.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect();
    (String::from_utf8_lossy(&output.stdout).into_owned(), console)
}

/// Writes a page with a script at its end, and gives its address.
fn with_script(page: &str, script: &str, name: &str) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.html"));
    let page = page.replace("</body>", &format!("<script type=\"module\">\n{script}\n</script>\n</body>"));
    std::fs::write(&path, page).expect("a temporary file can be written");
    format!("file://{}", path.display())
}

/// Returns the value that the script put into the element `result`.
fn result(document: &str) -> Value {
    let found = document.split_once("<pre id=\"result\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let (text, _) = found.unwrap_or_else(|| panic!("the script did not come to its end"));
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    serde_json::from_str(&text).expect("the result is JSON")
}

fn strings(value: &Value) -> Vec<&str> {
    value.as_array().map(|list| list.iter().filter_map(Value::as_str).collect()).unwrap_or_default()
}

/// The profile of a small circuit: every launch is analysed, so that there is some of everything to see, or most are
/// replayed.
fn circuit(name: &str, replayed: bool) -> PathBuf {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut command = Command::new(env!("CARGO_BIN_EXE_maniple"));
    command.args(["run", "circuit", "--pieces", "4", "--steps", "20", "--workers", "2", "--no-verify"]);
    command.args([if replayed { "--trace" } else { "--no-tracing" }, "--profile"]);
    let output = command.arg(&file).output().expect("the program can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    file
}

#[test]
fn the_page_can_be_used_and_asks_nobody_for_anything() {
    let Some(browser) = browser() else { return };
    for (name, replayed) in [("used", false), ("used-replayed", true)] {
        can_be_used(&browser, name, replayed);
    }
}

fn can_be_used(browser: &Path, name: &str, replayed: bool) {
    let profile = circuit(&format!("{name}.mprof"), replayed);
    let profile = Profile::of(Recording::read(&profile).expect("it was recorded"));
    let address = with_script(&page(&profile), include_str!("browser/drive.js"), name);
    let (document, console) = visit(browser, &address, name);
    assert_eq!(console, [""; 0], "nothing is written on the console");
    let result = result(&document);
    assert_eq!(strings(&result["problems"]), [""; 0]);
    assert_eq!(strings(&result["requests"]), [""; 0]);
    // What the page has is what the profile has.
    assert_eq!(result["spans"].as_u64(), Some(profile.span_count() as u64));
    assert_eq!(result["operations"].as_u64(), Some(profile.operations.len() as u64));
    assert!(result["steps"].as_u64() > Some(10));
    for name in ["calc_new_currents", "distribute_charge", "update_voltages", "map_task", "reduction"] {
        assert!(strings(&result["names"]).contains(&name), "{name}");
    }
    // A piece's charge moves when its currents are known, and before its voltages are updated.
    assert_eq!(result["selected"], "distribute_charge[2]");
    assert!(strings(&result["before"]).contains(&"calc_new_currents[2]"), "{}", result["before"]);
    assert!(strings(&result["after"]).contains(&"update_voltages[2]"), "{}", result["after"]);
    // 80 points, each with a span for mapping and one for running, and 20 analyses.
    if !replayed {
        assert_eq!(result["found"], "180 spans");
    }
}

#[test]
#[cfg(unix)]
fn the_selection_shows_what_another_process_sent() {
    let Some(browser) = browser() else { return };
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("job-visited.mprof");
    let program = env!("CARGO_BIN_EXE_maniple");
    let mut job = Command::new(program);
    job.args([
        "launch",
        "-n",
        "2",
        "--",
        program,
        "run",
        "circuit",
        "--pieces",
        "4",
        "--steps",
        "10",
        "--workers",
        "1",
    ]);
    let output = job.args(["--no-verify", "--trace", "--profile"]).arg(&file).output().expect("it can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let node =
        |node: u32| Recording::read(Path::new(&format!("{}.node{node}", file.display()))).expect("it was recorded");
    let Together { recording, notes } = together(vec![node(0), node(1)]).expect("there are two");
    let profile = Profile::of(recording).with_notes(notes);
    let script = "
        const { data, spans, view, select, spanName } = window.maniple;
        const told = (span) => [data.lanes[node(span)].node, spanName(span).replace(/[[].*/, '')];
        const node = (span) => spans.lane[span];
        const before = (span, name) => {
            select(span);
            return view.before.find((other) => spanName(other).startsWith(name)) ?? -1;
        };
        const found = [];
        for (let span = 0; span < spans.count; span++) {
            if (!spanName(span).startsWith('receive[') || data.kinds[spans.kind(span)] !== 'task') continue;
            const message = before(span, 'parcel from node');
            const sender = message < 0 ? -1 : before(message, 'send');
            if (sender < 0) continue;
            select(message);
            const panel = document.getElementById('selected').textContent;
            found.push({ shown: [span, message, sender].map(told), panel: panel.includes('send[') && panel.includes('receive[') });
        }
        const element = document.createElement('pre');
        element.id = 'result';
        element.textContent = JSON.stringify(found);
        document.body.append(element);";
    let address = with_script(&page(&profile), script, "job");
    let (document, console) = visit(&browser, &address, "job");
    assert_eq!(console, [""; 0], "nothing is written on the console");
    let found = result(&document);
    let found = found.as_array().expect("a list");
    // In each time step, whether analysed or replayed.
    for receiver in 0..2 {
        let shown = serde_json::json!([[receiver, "receive"], [receiver, "parcel from node"], [1 - receiver, "send"]]);
        let of_node = found.iter().filter(|one| one["shown"] == shown);
        assert!(of_node.clone().count() >= 10, "node {receiver}: {found:?}");
        assert!(of_node.clone().all(|one| one["panel"] == true), "node {receiver}: {found:?}");
    }
}

#[test]
fn the_served_page_draws() {
    use std::io::{BufRead, BufReader};
    let Some(browser) = browser() else { return };
    let mut server = Command::new(env!("CARGO_BIN_EXE_maniple"));
    server.arg("prof").arg(circuit("visited.mprof", true)).stdout(Stdio::piped());
    let mut server = server.spawn().expect("the program can be started");
    let mut line = String::new();
    let output = server.stdout.take().expect("the output is piped");
    BufReader::new(output).read_line(&mut line).expect("the server says where it is");
    let address = line.split_whitespace().find(|word| word.starts_with("http://")).map(str::to_owned);
    let visited = address.map(|address| visit(&browser, &address, "visited"));
    server.kill().expect("the server serves until it is ended");
    server.wait().expect("the server ends");
    let (document, console) = visited.unwrap_or_else(|| panic!("no address in: {line}"));
    assert_eq!(console, [""; 0], "nothing is written on the console");
    assert!(document.contains("2 processors") && document.contains("update_voltages"), "the page is filled in");
}

/// A profile of so many short tasks on four processors.
fn many_tasks(count: u64) -> Profile {
    const PROCESSORS: u64 = 4;
    let thread = |processor: u64| ThreadRecording {
        thread: Thread { name: format!("processor {processor}"), processor: Some(processor as u32) },
        node: 0,
        records: (0..count / PROCESSORS)
            .map(|number| {
                let (tag, operation) =
                    (Tag::of(LabelId((number % 3) as u32)), OperationId(1 + number * PROCESSORS + processor));
                Record::Span { tag, operation, start: number * 1_000, end: number * 1_000 + 900 }
            })
            .collect(),
    };
    Profile::of(Recording {
        header: Header { program: "many tasks".to_owned(), ..Header::default() },
        labels: ["red", "green", "blue"].map(|name| Label::new(Kind::Task, name)).to_vec(),
        graphs: Vec::new(),
        threads: (0..PROCESSORS).map(thread).collect(),
        completeness: Completeness::Whole,
    })
}

#[test]
fn what_is_drawn_follows_from_the_size_of_the_window_and_not_of_the_profile() {
    let Some(browser) = browser() else { return };
    let script = "
        const { draw, drawn, show, view, spans } = window.maniple;
        draw();
        const all = { ...drawn };
        show(1e6, 1.02e6);
        draw();
        const few = { ...drawn };
        const element = document.createElement('pre');
        element.id = 'result';
        const width = document.getElementById('timeline').clientWidth;
        element.textContent = JSON.stringify({ all, few, count: spans.count, width });
        document.body.append(element);";
    let address = with_script(&page(&many_tasks(1_000_000)), script, "many");
    let (document, console) = visit(&browser, &address, "many");
    assert_eq!(console, [""; 0], "nothing is written on the console");
    let result = result(&document);
    assert_eq!(result["count"].as_u64(), Some(1_000_000));
    let (all, width) = (&result["all"], result["width"].as_u64());
    assert!(
        all["columns"].as_u64() > Some(1000) && all["columns"].as_u64() <= width.map(|width| 4 * width),
        "{result}"
    );
    assert_eq!(all["spans"].as_u64(), Some(0), "each is narrower than a pixel");
    // Twenty microseconds show twenty tasks of each processor, and perhaps one at the edge.
    assert!((80..=84).contains(&result["few"]["spans"].as_u64().unwrap_or(0)), "{result}");
}
