//! Files that nodes write one after the other: what is in the file when each begins.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use maniple::mapper::{DefaultMapper, Sharding, ShardingMapper, TaskInfo};
use maniple::{Machine, Runtime};
use maniple_files::tcs::load::Pieces;
use maniple_files::tcs::{TcsHeader, TcsPart, Width};
use maniple_tensor::distributed::{Tensor, Writers};
use maniple_tensor::element::ElementType;
use maniple_tensor::notation::TensorVariable;
use maniple_tests::nodes::{Connections, each_node};

/// The file beside the one that is asked for, as it is now.
fn aside(folder: &Path) -> Vec<u8> {
    let mut entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let aside = entries.find(|path| path.extension().is_some_and(|extension| extension == "part"));
    fs::read(aside.expect("it was made before anything is written")).unwrap()
}

/// Has all nodes write a matrix without zeros: gives what each sees in the file when it launches the tasks of each
/// turn.
fn seen(nodes: usize, to: &Path) -> Vec<Vec<Vec<u8>>> {
    let (connections, folder) = (Connections::new(nodes), to.parent().unwrap());
    let variable = TensorVariable::new("A", ElementType::F64, [37, 20]);
    each_node(nodes, |node| {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let look = {
            let (seen, folder) = (Arc::clone(&seen), folder.to_owned());
            move |launch: &TaskInfo<'_>, _| {
                if launch.name.starts_with("store ") {
                    seen.lock().unwrap().push(aside(&folder));
                }
                Sharding::Blocked
            }
        };
        let builder = Runtime::builder().machine(Machine::uniform(1, 1 << 24)).workers(1);
        let builder = builder.mapper(ShardingMapper::new(DefaultMapper::new(), look));
        let runtime = builder.network(connections.node(node)).build().unwrap();
        let written = runtime.run(async |cx| {
            let matrix = Tensor::new(cx, &variable)?;
            matrix.generate(cx, &matrix.slabs(nodes), |at| (at[0] * 20 + at[1] + 1) as f64)?;
            Ok(matrix.store_by(cx, to, Width::Eight, Writers::InTurn).await?)
        });
        assert_eq!(written.unwrap().pieces, nodes);
        drop(runtime);
        Arc::into_inner(seen).unwrap().into_inner().unwrap()
    })
}

#[test]
fn a_node_begins_to_write_when_those_before_it_have_written_all() {
    for nodes in 2..=4 {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("a.tcs");
        let seen = seen(nodes, &to);
        let written = fs::read(&to).unwrap();
        let header = TcsHeader::read(&written).unwrap();
        let (pieces, values) = (Pieces::equal(&header, nodes), header.section(TcsPart::Values));
        for (node, turns) in seen.iter().enumerate() {
            assert_eq!(turns.len(), nodes, "node {node} of {nodes}");
            for (turn, bytes) in turns.iter().enumerate() {
                for piece in 0..nodes {
                    let range = pieces.range(TcsPart::Values, piece);
                    let places = [range.start, range.end].map(|place| (values.offset + 8 * place) as usize);
                    let (found, all) = (&bytes[places[0]..places[1]], &written[places[0]..places[1]]);
                    let is_there = found == all;
                    let is_none = found.iter().all(|byte| *byte == 0);
                    let what = format!("piece {piece} when node {node} of {nodes} launches turn {turn}");
                    // Another node may have begun with its turn.
                    assert!(!all.is_empty() && (is_there || piece >= turn), "{what} is not there");
                    assert!(is_none || piece < turn || piece == turn && node != turn, "{what} is there");
                }
            }
        }
    }
}
