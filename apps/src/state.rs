//! The state of a simulation in a folder, where a later run goes on from it: an `.npy` file for each array, and
//! `state.json`, which says what they are of.
//!
//! Arrays are written beside those that are there, under names of their own. That `state.json` names the new ones makes
//! them the state, from one moment to the next: a program that ends before has changed nothing, and one that ends later
//! has stored everything.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Read, Seek, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use maniple::{Context, File, Runtime};
use maniple_files::npy::NpyHeader;
use serde::{Deserialize, Serialize};

use crate::alike::on_all_nodes;
use crate::error::{Error as AppError, Result as AppResult};

/// The file that says what is in a folder.
const STATE: &str = "state.json";

/// The state that a simulation begins with, and the file for the one at its end.
#[derive(Args, Clone, Debug, Default)]
pub struct StateOptions {
    /// Go on from the state in this folder, which --save has stored; --steps are steps more
    #[arg(long, value_name = "DIR")]
    pub load: Option<PathBuf>,

    /// Store the state after the last step in this folder, as .npy files; it replaces one that is there when it is
    /// whole
    #[arg(long, value_name = "DIR")]
    pub save: Option<PathBuf>,
}

/// The subject of a state: names of the simulation's parameters, and their values.
pub type Subject = BTreeMap<String, String>;

/// The contents of the file [`STATE`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    /// The program that has stored it.
    program: String,
    /// The steps that it has come to.
    steps: usize,
    /// Each state that is stored in a folder has another number, which is a part of its files' names.
    number: u64,
    /// The subject of the state.
    of: Subject,
}

impl Manifest {
    /// Reads the manifest of a folder, if there is one.
    fn read(folder: &Path) -> AppResult<Option<Self>> {
        let path = folder.join(STATE);
        let unusable = |reason: String| AppError::Usage(format!("{}: {reason}", path.display()));
        // To read a pipe is to wait for its other end.
        if fs::metadata(&path).is_ok_and(|found| !found.is_file()) {
            return Err(unusable("is no file; give a folder in which --save has stored a state".to_owned()));
        }
        match fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unusable(format!("cannot be read: {error}"))),
            Ok(text) => {
                let told = |error: serde_json::Error| format!("is no state that --save has stored: {error}");
                serde_json::from_str(&text).map(Some).map_err(|error| unusable(told(error)))
            }
        }
    }

    fn file(folder: &Path, name: &str, number: u64) -> PathBuf {
        folder.join(format!("{name}-{number}.npy"))
    }
}

/// A state to go on from.
#[derive(Clone, Debug)]
pub struct Loaded {
    folder: PathBuf,
    number: u64,
    /// The steps that it has come to.
    pub steps: usize,
}

/// More steps than any run takes.
const MOST_STEPS: usize = 1 << 48;

impl Loaded {
    /// The state of a program in a folder: arrays of these names.
    ///
    /// # Errors
    /// [`AppError::Usage`] if there is none, it is of something else, or its arrays are not whole.
    pub fn open(folder: &Path, program: &str, of: &Subject, arrays: &[&str]) -> AppResult<Self> {
        let refused =
            |reason: String| Err(AppError::Usage(format!("cannot go on from `{}`: {reason}", folder.display())));
        let Some(found) = Manifest::read(folder)? else {
            return refused(format!("there is no `{STATE}` in it; give a folder in which --save has stored a state"));
        };
        if found.program != program {
            return refused(format!("it is the state of `{}`, not of `{program}`", found.program));
        }
        if found.steps > MOST_STEPS {
            return refused(format!("it is said to be after {} steps, and {MOST_STEPS} are the most", found.steps));
        }
        for (name, expected) in of {
            let stored = found.of.get(name).map_or("unknown", String::as_str);
            if stored != expected {
                return refused(format!(
                    "its {name}: {stored}, not {expected}; run it with the options that it was stored with"
                ));
            }
        }
        for name in arrays {
            let path = Manifest::file(folder, name, found.number);
            if let Err(reason) = check(&path) {
                return refused(format!("`{}` {reason}; it is not as --save has stored it", path.display()));
            }
        }
        Ok(Self { folder: folder.to_owned(), number: found.number, steps: found.steps })
    }

    /// The same on all nodes of a job, each of which opens it for itself.
    ///
    /// # Errors
    /// As [`open`](Self::open), on all nodes if on one; and if nodes have different states.
    pub fn open_on(runtime: &Runtime, folder: &Path, program: &str, of: &Subject, arrays: &[&str]) -> AppResult<Self> {
        let found = Self::open(folder, program, of, arrays);
        let what = format!("the state in `{}`", folder.display());
        on_all_nodes(runtime, &what, found, |loaded| loaded.digest(arrays))
    }

    /// A number that is another one for another state, very likely.
    fn digest(&self, arrays: &[&str]) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.number, self.steps).hash(&mut hasher);
        // What cannot be read here cannot be read later either.
        arrays.iter().for_each(|name| sample(&Manifest::file(&self.folder, name, self.number)).ok().hash(&mut hasher));
        hasher.finish()
    }

    /// The file of an array.
    #[must_use]
    pub fn array(&self, name: &str) -> File {
        File::npy(Manifest::file(&self.folder, name, self.number))
    }
}

/// So many pieces of a file are compared, from its beginning to its end.
const SAMPLES: u64 = 64;

/// The bytes of each.
const SAMPLE: u64 = 4096;

/// A hash of what is here and there in a file, or of all of it if it is short.
fn sample(path: &Path) -> std::io::Result<u64> {
    let mut file = fs::File::open(path)?;
    let length = file.metadata()?.len();
    let mut hasher = DefaultHasher::new();
    length.hash(&mut hasher);
    let (samples, size) = if length <= SAMPLES * SAMPLE { (1, length) } else { (SAMPLES, SAMPLE) };
    let mut bytes = vec![0; size as usize];
    for number in 0..samples {
        let offset = u128::from(length - size) * u128::from(number) / u128::from((samples - 1).max(1));
        file.seek(SeekFrom::Start(offset as u64))?;
        file.read_exact(&mut bytes)?;
        bytes.hash(&mut hasher);
    }
    Ok(hasher.finish())
}

/// Whether an array is whole; otherwise why not.
fn check(path: &Path) -> Result<(), String> {
    let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
    let found = fs::metadata(path).map_err(unreadable)?;
    // To read a pipe is to wait for its other end.
    if !found.is_file() {
        return Err("is no file".to_owned());
    }
    let mut file = fs::File::open(path).map_err(unreadable)?;
    let header = NpyHeader::read(&mut file).map_err(|error| format!("cannot be read: {error}"))?;
    let (expected, found) = (header.start + header.bytes(), found.len());
    match found == expected {
        true => Ok(()),
        false => Err(format!("has {found} bytes, and must have {expected} by its header")),
    }
}

/// A folder in which a state is to be stored.
#[derive(Clone, Debug)]
pub struct Saving {
    folder: PathBuf,
    program: &'static str,
    of: Subject,
}

impl Saving {
    /// A folder for a state of a program, which is made if need be.
    ///
    /// # Errors
    /// [`AppError::Usage`] if it cannot be made, or has the state of another program.
    pub fn prepare(folder: &Path, program: &'static str, of: Subject) -> AppResult<Self> {
        let refused =
            |reason: String| AppError::Usage(format!("cannot store the state in `{}`: {reason}", folder.display()));
        fs::create_dir_all(folder).map_err(|error| refused(error.to_string()))?;
        match Manifest::read(folder)? {
            Some(found) if found.program != program => {
                Err(refused(format!("it has the state of `{}`; give another folder, or remove it", found.program)))
            }
            _ => Ok(Self { folder: folder.to_owned(), program, of }),
        }
    }

    /// The same on all nodes of a job, for each of which it must be possible.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare), on all nodes if on one.
    pub fn prepare_on(runtime: &Runtime, folder: &Path, program: &'static str, of: Subject) -> AppResult<Self> {
        on_all_nodes(runtime, "the folder", Self::prepare(folder, program, of), |_| 0)
    }

    /// Begins to store a state, on all nodes.
    ///
    /// # Errors
    /// The job's, if it is over.
    pub async fn begin(self, cx: &Context) -> maniple::Result<Storing> {
        // Nodes read it at different times, while other programs may write it.
        let own = Manifest::read(&self.folder).ok().flatten().map_or(0, |found| found.number);
        let number = cx.per_node(own).all().await?.first().map_or(1, |found| found.wrapping_add(1));
        Ok(Storing { saving: self, number, arrays: Vec::new() })
    }
}

/// A state that is being stored.
#[derive(Debug)]
pub struct Storing {
    saving: Saving,
    number: u64,
    arrays: Vec<&'static str>,
}

impl Storing {
    /// The file of an array, to be made.
    #[must_use]
    pub fn array(&mut self, name: &'static str) -> File {
        self.arrays.push(name);
        File::npy(Manifest::file(&self.saving.folder, name, self.number)).create()
    }

    /// Makes the arrays, which all nodes have written, the state: after so many steps.
    ///
    /// # Errors
    /// The system's, if this cannot be written.
    pub async fn finish(self, cx: &Context, runtime: &Runtime, steps: usize) -> maniple::Result<()> {
        let Self { saving: Saving { folder, program, of }, number, arrays } = self;
        let mut problem = None;
        if runtime.node() == 0 {
            let manifest = Manifest { program: program.to_owned(), steps, number, of };
            let path = folder.join(STATE);
            let failed = |error: std::io::Error| format!("cannot write `{}`: {error}", path.display());
            problem = replace(&folder, &manifest).map_err(failed).err();
            if problem.is_none() {
                remove_others(&folder, &arrays, number);
            }
        }
        let problem = cx.per_node(problem).all().await?.into_iter().flatten().next();
        problem.map_or(Ok(()), |problem| Err(maniple::Error::application(problem)))
    }
}

/// Writes what a folder has, beside its place, and puts it there when it is whole. What a program that was killed has
/// left beside it is overwritten.
fn replace(folder: &Path, manifest: &Manifest) -> std::io::Result<()> {
    let text = serde_json::to_string_pretty(manifest)?;
    let (path, beside) = (folder.join(STATE), folder.join(format!(".{STATE}.part")));
    let written = fs::File::create(&beside).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, &path)
    });
    written.inspect_err(|_| _ = fs::remove_file(&beside))?;
    // So that the names are stored too, where the system can be told so.
    fs::File::open(folder).and_then(|folder| folder.sync_all()).or(Ok(()))
}

/// Removes the arrays of states that were there before. What is not removed does no harm.
fn remove_others(folder: &Path, arrays: &[&str], number: u64) {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    for path in entries.map(|entry| entry.path()) {
        let name = path.file_stem().and_then(|name| name.to_str()).and_then(|name| name.rsplit_once('-'));
        let is_other = name.is_some_and(|(array, found)| {
            arrays.contains(&array) && found.parse::<u64>().is_ok_and(|found| found != number)
        });
        if is_other && path.extension().is_some_and(|extension| extension == "npy") {
            _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(size: &str) -> Subject {
        Subject::from([("size".to_owned(), size.to_owned())])
    }

    #[test]
    fn a_state_is_that_which_the_folder_names_and_others_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let refused = |program, size| Loaded::open(path, program, &of(size), &["cells"]).unwrap_err().to_string();
        assert!(refused("stencil", "3").contains("there is no `state.json`"));
        let manifest = Manifest { program: "stencil".to_owned(), steps: 7, number: 4, of: of("3") };
        // As if a program had been killed.
        fs::write(path.join(".state.json.part"), "{".repeat(10_000)).unwrap();
        replace(path, &manifest).unwrap();
        assert_eq!(Manifest::read(path).unwrap(), Some(manifest));
        assert_eq!(fs::read_dir(path).unwrap().count(), 1);
        assert!(refused("stencil", "3").contains("cells-4.npy` cannot be read: No such file"));
        let mut array = Vec::new();
        maniple_files::npy::write_array(&mut array, &[3], &[1.0, 2.0, 3.0]).unwrap();
        for (damaged, told) in [
            (&array[..array.len() - 1], "cells-4.npy` has 151 bytes, and must have 152 by its header"),
            (&[&array[..], b"x"].concat(), "cells-4.npy` has 153 bytes, and must have 152 by its header"),
            (&array[1..], "cells-4.npy` cannot be read: byte 0: this is no .npy file"),
        ] {
            fs::write(Manifest::file(path, "cells", 4), damaged).unwrap();
            assert!(refused("stencil", "3").contains(told), "{}", refused("stencil", "3"));
        }
        fs::write(Manifest::file(path, "cells", 4), &array).unwrap();
        let loaded = Loaded::open(path, "stencil", &of("3"), &["cells"]).unwrap();
        assert_eq!((loaded.steps, loaded.number), (7, 4));
        assert!(refused("circuit", "3").contains("it is the state of `stencil`, not of `circuit`"));
        assert!(refused("stencil", "4").contains("its size: 3, not 4"));
        assert!(Saving::prepare(path, "circuit", of("3")).unwrap_err().to_string().contains("the state of `stencil`"));
        let manifest = Manifest { program: "stencil".to_owned(), steps: usize::MAX - 1, number: 4, of: of("3") };
        replace(path, &manifest).unwrap();
        assert!(refused("stencil", "3").contains("are the most"));
        fs::write(path.join(STATE), "{\"program\": 3}").unwrap();
        assert!(refused("stencil", "3").contains("is no state that --save has stored"));
    }

    #[test]
    fn only_arrays_of_other_states_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let names = ["input-3.npy", "input-4.npy", "input-x.npy", "other-3.npy", "input-3.txt", "input.npy"];
        names.iter().for_each(|name| fs::write(folder.path().join(name), "").unwrap());
        remove_others(folder.path(), &["input"], 4);
        let left = names.iter().filter(|name| folder.path().join(name).exists());
        assert!(left.eq(&names[1..]));
    }
}
