//! Tensors from files of all kinds and to them, by the door of the library: the same on any number of nodes.

use std::fs;
use std::path::PathBuf;

use maniple::Result;
use maniple_tensor::compute::TensorContext;
use maniple_tensor::distributed::Tensor;
use maniple_tensor::element::ElementType;
use maniple_tensor::files::TensorFile;
use maniple_tensor::notation::TensorVariable;
use maniple_tests::nodes::{Nodes, on_nodes};

/// A matrix of 60 rows and 40 columns, and the vector of 40 elements that is 1, 2, 3, ...
const MARKET: &str = "%%MatrixMarket matrix coordinate real general\n60 40 120\n";

fn written(folder: &tempfile::TempDir) -> PathBuf {
    let lines = (0..120).map(|entry| format!("{} {} {}.25\n", entry / 2 + 1, entry * 7 % 40 + 1, entry));
    let path = folder.path().join("a.mtx");
    fs::write(&path, MARKET.to_owned() + &lines.collect::<String>()).unwrap();
    path
}

/// The product of the matrix and the vector.
fn product() -> Vec<f64> {
    let mut product = vec![0.0; 60];
    (0..120).for_each(|entry| product[entry / 2] += (entry as f64 + 0.25) * (entry * 7 % 40 + 1) as f64);
    product
}

#[test]
fn what_is_saved_in_a_file_of_any_kind_is_the_tensor_that_is_read_from_it() {
    let folder = tempfile::tempdir().unwrap();
    let matrix = written(&folder);
    for nodes in [1, 2, 3] {
        for (kind, format) in [("mtx", "csr"), ("tns", "dcsr"), ("npz", "csc"), ("tcs", "csr"), ("npy", "rows")] {
            let copy = folder.path().join(format!("copy.{kind}"));
            let done = on_nodes(Nodes::new(nodes), async |cx, _| -> Result<Vec<f64>> {
                let first = TensorFile::of(&matrix)?.tensor(cx, "A", Some("csr".parse()?)).await?;
                TensorFile::of(&copy)?.save(cx, &first).await?;
                // Files of levels and of all elements say how they are stored.
                let said = if ["tcs", "npy"].contains(&kind) { None } else { Some(format.parse()?) };
                let a = TensorFile::of(&copy)?.tensor(cx, "A", said).await?;
                assert_eq!(*a.variable().format(), format.parse().unwrap(), "{kind}");
                let x = Tensor::new(cx, &TensorVariable::new("x", ElementType::F64, [40]))?;
                x.generate(cx, &x.slabs(2), |at| at[0] as f64 + 1.0)?;
                let y = cx.compute("y(i) = A(i,j) * x(j)").with([&a, &x]).run().await?;
                Ok(y.read_elements(cx).await?)
            });
            for found in done {
                assert_eq!(found.unwrap(), product(), "{kind} on {nodes}");
            }
        }
    }
}

#[test]
fn files_that_cannot_be_tensors_are_refused_on_all_nodes_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let matrix = written(&folder);
    let (wrong, empty) = (folder.path().join("wrong.mtx"), folder.path().join("empty.tns"));
    fs::write(&wrong, "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 one 1\n").unwrap();
    fs::write(&empty, "").unwrap();
    let (missing, nowhere) = (folder.path().join("missing.npy"), folder.path().join("nowhere").join("a.npz"));
    for nodes in [1, 3] {
        for (path, format, reason) in [
            (&missing, None, "cannot be read: No such file"),
            (&matrix, None, "it lists the entries of a sparse tensor: say how to store it, such as csr"),
            (&matrix, Some("csf:3"), "3 levels does not store a tensor of 2 dimensions"),
            (&empty, Some("coo"), "it has no entries, which would tell the extents"),
            (&wrong, Some("csr"), "wrong.mtx:3: the column 'one' is not a whole number"),
        ] {
            let done = on_nodes(Nodes::new(nodes), async |cx, _| -> Result<String> {
                let format = format.map(|format: &str| format.parse().unwrap());
                let read = TensorFile::of(path)?.tensor(cx, "A", format).await;
                Ok(read.map_or_else(|error| error.to_string(), |_| "no error".to_owned()))
            });
            for found in done {
                let found = found.unwrap();
                assert!(found.contains(reason), "{found}, and not {reason} on {nodes}");
            }
        }
        let done = on_nodes(Nodes::new(nodes), async |cx, _| -> Result<String> {
            let a = TensorFile::of(&matrix)?.tensor(cx, "A", Some("csr".parse()?)).await?;
            let saved = TensorFile::of(&nowhere)?.save(cx, &a).await;
            Ok(saved.map_or_else(|error| error.to_string(), |()| "no error".to_owned()))
        });
        for found in done {
            let found = found.unwrap();
            assert!(found.contains("nowhere") && found.contains("No such file"), "{found} on {nodes}");
        }
    }
}
