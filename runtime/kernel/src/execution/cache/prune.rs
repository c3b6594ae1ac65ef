//! Keeps the folder of compiled kernels from growing for ever.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Entries of so many bytes, all together, stay however old they are.
pub(super) const SIZE: u64 = 128 << 20;

/// Entries that were used in this time stay however many they are.
const USED: Duration = Duration::from_hours(4 * 7 * 24);

/// Files of a compilation whose process was killed are deleted after this time: no compiler takes so long.
const MAKING: Duration = Duration::from_hours(24);

/// Deletes entries that were not used for four weeks before `now`, the oldest first, until the others have at most
/// `size` bytes. What cannot be looked at or deleted stays.
pub(super) fn prune(folder: &Path, now: SystemTime, size: u64) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut found: Vec<(Duration, u64, PathBuf)> = Vec::new();
    for entry in entries.flatten() {
        let (Ok(data), path) = (entry.metadata(), entry.path()) else { continue };
        let Some(unused) = data.modified().ok().and_then(|used| now.duration_since(used).ok()) else {
            found.push((Duration::ZERO, data.len(), path));
            continue;
        };
        if data.is_file() && path.extension().is_some_and(|extension| extension == "so") {
            found.push((unused, data.len(), path));
        } else if data.is_dir() && entry.file_name().to_string_lossy().starts_with("making-") && unused > MAKING {
            let _ = fs::remove_dir_all(path);
        }
    }
    let mut all: u64 = found.iter().map(|(_, bytes, _)| bytes).sum();
    found.sort_unstable_by(|one, other| other.cmp(one));
    for (_, bytes, path) in found.into_iter().filter(|(unused, ..)| *unused > USED) {
        if all <= size {
            break;
        }
        if fs::remove_file(path).is_ok() {
            all -= bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    const DAY: Duration = Duration::from_hours(24);

    fn left(size: u64) -> Vec<String> {
        let folder = tempfile::tempdir().expect("a folder");
        let now = SystemTime::UNIX_EPOCH + 1000 * DAY;
        for (name, days) in [("a.so", 100), ("b.so", 50), ("c.so", 29), ("d.so", 27), ("e.so", 0), ("notes", 100)] {
            let path = folder.path().join(name);
            fs::write(&path, [0; 100]).expect("written");
            File::options().write(true).open(&path).and_then(|file| file.set_modified(now - days * DAY)).expect("set");
        }
        for (name, days) in [("making-1", 2), ("making-2", 0), ("other", 2)] {
            let path = folder.path().join(name);
            fs::create_dir(&path).expect("made");
            File::open(&path).and_then(|file| file.set_modified(now - days * DAY)).expect("set");
        }
        prune(folder.path(), now, size);
        let entries = fs::read_dir(folder.path()).expect("a folder").flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_oldest_go_until_the_others_are_few_enough() {
        let with =
            |entries: &str| format!("{entries} making-2 notes other").split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(left(500), with("a.so b.so c.so d.so e.so"));
        assert_eq!(left(499), with("b.so c.so d.so e.so"));
        assert_eq!(left(300), with("c.so d.so e.so"));
    }

    #[test]
    fn what_was_used_lately_stays_however_much_it_is() {
        assert_eq!(left(0), ["d.so", "e.so", "making-2", "notes", "other"]);
    }
}
