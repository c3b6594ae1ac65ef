//! `--load` and `--save`: a simulation that goes on where another ended.

use std::fs;
use std::path::Path;

use maniple_files::npy::{NpyHeader, read_elements};

use super::*;

/// A folder that is not there.
fn folder(name: &str) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    path.to_str().unwrap().to_owned()
}

fn array(folder: &str, name: &str) -> (Vec<u64>, Vec<f64>) {
    let mut file = fs::File::open(Path::new(folder).join(name)).unwrap();
    let header = NpyHeader::read(&mut file).unwrap();
    let array = read_elements::<f64>(&header, &mut file, None).unwrap();
    (array.shape, array.elements)
}

fn names(folder: &str) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    names
}

#[test]
fn a_stencil_goes_on_where_another_ended() {
    let folder = folder("state-stencil");
    let grid = "run stencil --size 20x30 --tiles 3x2 --radius 1";
    prints(&format!("{grid} --steps 4 --save {folder}"));
    assert_eq!(names(&folder), ["input-1.npy", "output-1.npy", "state.json"]);
    let (shape, output) = array(&folder, "output-1.npy");
    assert_eq!(shape, [20, 30]);
    assert!(output.iter().enumerate().all(|(number, &value)| {
        let is_inner = (1..19).contains(&(number / 30)) && (1..29).contains(&(number % 30));
        value == if is_inner { 8.0 } else { 0.0 }
    }));
    for tiles in ["1", "5x6"] {
        let report = prints(&format!("run stencil --size 20x30 --tiles {tiles} --radius 1 --steps 3 --load {folder}"));
        assert!(value(&report, "largest relative error").starts_with("0 (at most 1e-8 "), "{report}");
    }
    prints(&format!("{grid} --steps 3 --load {folder} --save {folder} --mapper random"));
    assert_eq!(names(&folder), ["input-2.npy", "output-2.npy", "state.json"]);
    assert_eq!(array(&folder, "output-2.npy").1[31], 14.0);
}

#[test]
fn a_circuit_goes_on_where_another_ended() {
    let folder = folder("state-circuit");
    prints(&format!("{SMALL_CIRCUIT} --save {folder}"));
    assert_eq!(names(&folder), ["charge-1.npy", "state.json", "voltage-1.npy"]);
    assert_eq!(array(&folder, "voltage-1.npy").0, [80]);
    for mapper in ["default", "piecewise", "random"] {
        prints(&format!("{SMALL_CIRCUIT} --load {folder} --mapper {mapper}"));
    }
}

#[test]
fn a_state_that_is_another_is_refused() {
    let folder = folder("state-refused");
    let grid = "run stencil --steps 2 --radius 1 --tiles 2";
    fails(
        &format!("{grid} --size 9 --load {folder}"),
        2,
        &format!("cannot go on from `{folder}`: there is no `state.json` in it"),
    );
    prints(&format!("{grid} --size 9 --save {folder}"));
    let cannot = format!("cannot go on from `{folder}`: ");
    fails(&format!("{grid} --size 9x10 --load {folder}"), 2, &format!("{cannot}its size: 9 x 9, not 9 x 10"));
    fails(&format!("{SMALL_CIRCUIT} --load {folder}"), 2, &format!("{cannot}it is the state of `stencil`"));
    fails(
        &format!("{SMALL_CIRCUIT} --save {folder}"),
        2,
        &format!("cannot store the state in `{folder}`: it has the state of `stencil`"),
    );
    fails(&format!("{grid} --size 9 --save /dev/null/x"), 2, "cannot store the state in `/dev/null/x`: ");
    // Arrays that are not what they should be.
    let input = Path::new(&folder).join("input-1.npy");
    let whole = fs::read(&input).unwrap();
    for other in [whole[..whole.len() - 8].to_vec(), [&whole[..], &[0; 8]].concat()] {
        fs::write(&input, &other).unwrap();
        let told = format!("{cannot}`{}` has {} bytes, and must have {}", input.display(), other.len(), whole.len());
        fails(&format!("{grid} --size 9 --load {folder}"), 2, &told);
    }
    fs::write(&input, &whole).unwrap();
    let text = fs::read_to_string(Path::new(&folder).join("state.json")).unwrap().replace("9 x 9", "9 x 8");
    fs::write(Path::new(&folder).join("state.json"), text).unwrap();
    fails(
        &format!("{grid} --size 9x8 --load {folder}"),
        1,
        &format!("file `{}` has the shape (9, 9)", input.display()),
    );
}

#[test]
fn what_was_left_of_a_program_that_ended_too_early_changes_nothing() {
    let folder = folder("state-early");
    let grid = "run stencil --size 9 --steps 2 --radius 1 --tiles 2";
    prints(&format!("{grid} --save {folder}"));
    // The next state, of which a part is there.
    fs::write(Path::new(&folder).join("input-2.npy"), "a half").unwrap();
    fs::write(Path::new(&folder).join("output-2.npy.77-0.partial"), "a quarter").unwrap();
    prints(&format!("{grid} --load {folder}"));
    prints(&format!("{grid} --load {folder} --save {folder}"));
    assert_eq!(array(&folder, "output-2.npy").1[10], 8.0);
}
