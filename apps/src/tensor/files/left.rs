//! Files that are written beside the one that is asked for, and left there by a program that was killed.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::output::around;

/// Returns the files beside a file that were left there, or are being written, in the order of names.
fn beside(path: &Path) -> Vec<PathBuf> {
    let (prefix, suffix) = around(path);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let files = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let is_part = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.strip_prefix(&prefix).is_some_and(|rest| rest.ends_with(suffix))
    };
    let mut found: Vec<PathBuf> = files.map(|file| file.path()).filter(is_part).collect();
    found.sort();
    found
}

/// Says on the standard error which files beside one may be deleted.
pub fn tell(path: &Path) {
    for file in beside(path) {
        // The output may be closed.
        let _ = writeln!(
            io::stderr(),
            "warning: `{}` is what another program has written of this file: delete it, unless that program still runs",
            file.display()
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_parts_of_the_same_file_are_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let names = [".a.tcs.0f.part", ".a.tcs.part", ".b.tcs.0f.part", "a.tcs", "a.tcs.0f.part", ".a.tcs.0f.par"];
        names.iter().for_each(|name| std::fs::write(folder.path().join(name), "").unwrap());
        assert_eq!(beside(&folder.path().join("a.tcs")), [folder.path().join(".a.tcs.0f.part")]);
        assert_eq!(beside(Path::new("no folder/a.tcs")), [""; 0].map(PathBuf::from));
    }
}
