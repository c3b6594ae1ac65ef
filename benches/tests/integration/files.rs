//! Files are measured at small sizes.

use std::path::Path;

use maniple_benches::files::{FIGURES, Stage};
use maniple_benches::toolbox::Toolbox;

#[test]
fn all_that_is_measured_of_files_gives_figures() {
    let folder = tempfile::tempdir().unwrap();
    let stage = Stage {
        toolbox: Toolbox::new(Path::new(env!("CARGO_TARGET_TMPDIR")), 2),
        ours: env!("CARGO_BIN_EXE_maniple-sparse-turns").into(),
        folder: folder.path().to_owned(),
        bytes: 1_000_000,
        rounds: 1,
    };
    for figures in FIGURES {
        let rows = (figures.measure)(&stage).unwrap_or_else(|error| panic!("{}: {error}", figures.name));
        assert!(!rows.is_empty(), "{}", figures.name);
        for row in rows {
            assert!(row.figure.is_finite() && row.figure > 0.0, "{}: {row:?}", figures.name);
        }
    }
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("part")), "{left:?}");
}
