//! Files that tasks of all nodes write together: beside the one that is asked for, whose name they take when all is
//! written.

use std::collections::hash_map::RandomState;
use std::fs::{self, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use maniple::space::{AnyRect, Rect};
use maniple::task::{Codec, LeafCall, TaskDefinition, TaskOptions, Value};
use maniple::{Context, TaskLauncher};
use maniple_files::tcs::store::Target;

use super::error::DistributedError;

/// How many numbers are tried for the file beside one: chance does not give one that is taken as often.
const MOST_ASIDE: u64 = 16;

pub(super) fn wrong(path: &Path, reason: String) -> DistributedError {
    DistributedError::File { name: path.display().to_string(), reason, is_input: false }
}

/// The outcome of the work that one node does for all: a number, or a description of the problem.
pub(crate) type Alone = Result<u64, String>;

/// Has one node do something: all get what it comes to.
pub(crate) async fn alone(
    cx: &Context,
    what: &str,
    run: impl Fn() -> io::Result<u64> + Send + Sync + 'static,
) -> Result<Alone, DistributedError> {
    let task = TaskDefinition::new(what).codec(Codec::of::<Alone>());
    let run = move |_: &LeafCall<'_>| Ok(Value::new(run().map_err(|error| error.to_string())));
    let task = Arc::new(task.leaf(TaskOptions::default(), run));
    let domain = AnyRect::from(Rect::<1>::from(0..1));
    let mut found = cx.index_launch(domain, TaskLauncher::new(&task).typed::<Alone>()).all().await?;
    Ok(found.pop().expect("a launch over one point has one result"))
}

/// The file beside the one with a name, until it gets the name.
pub(super) struct Aside {
    pub(super) path: PathBuf,
    is_kept: bool,
}

impl Aside {
    pub(super) fn new(path: &Path, number: u64) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Self { path: path.with_file_name(format!(".{name}.{number:016x}.part")), is_kept: false }
    }

    pub(super) fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if !self.is_kept {
            // Another node may have removed it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Makes a file beside the one with this name, with room for so many bytes, and gives its number.
pub(super) fn create(path: &Path, bytes: u64) -> io::Result<u64> {
    if path.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    for _ in 0..MOST_ASIDE {
        // By chance, so that no node takes what is left of an earlier job in a folder of its own for it.
        let number = RandomState::new().build_hasher().finish();
        let mut aside = Aside::new(path, number);
        match OpenOptions::new().write(true).create_new(true).open(&aside.path) {
            Ok(file) => {
                file.set_len(bytes)?;
                aside.is_kept = true;
                return Ok(number);
            }
            Err(error) => {
                // It is another's, or there is none.
                aside.is_kept = true;
                if error.kind() != io::ErrorKind::AlreadyExists {
                    return Err(error);
                }
            }
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Writes what a file begins with, and gives the file its name: with it, all of it is on the disk.
pub(super) fn finish(aside: &Path, path: &Path, header: &[u8]) -> io::Result<u64> {
    let file = OpenOptions::new().write(true).open(aside)?;
    file.write_at(0, header)?;
    file.sync_all()?;
    fs::rename(aside, path)?;
    Ok(header.len() as u64)
}

/// The message of a node that does not see the file that another node has made.
pub(super) const UNSHARED: &str = "a node does not see the file that another has made in this folder, which all have to share; or have the result written to a .npz file, which one node writes alone";
