//! Whether no other user can put code into a folder.

use std::fs::{self, Metadata};
use std::io;
use std::path::Path;

#[cfg(unix)]
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};

/// The user whose process this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    #[cfg(unix)]
    user: u32,
}

impl Owner {
    /// The owner of a file.
    pub(super) fn of(file: &Metadata) -> Self {
        #[cfg(not(unix))]
        let _ = file;
        Self {
            #[cfg(unix)]
            user: file.uid(),
        }
    }

    /// Checks that this is a plain file that only this user can have written.
    pub(super) fn check_file(self, file: &Metadata) -> io::Result<()> {
        if !file.is_file() {
            return Err(io::Error::other("it is no plain file"));
        }
        #[cfg(unix)]
        {
            if file.uid() != self.user {
                return Err(io::Error::other("it belongs to another user"));
            }
            if file.mode() & 0o022 != 0 {
                return Err(io::Error::other("others may write to it"));
            }
        }
        Ok(())
    }
}

/// Makes `folder` if it is not there, with what is above it, for this user alone.
pub(super) fn make(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    builder.mode(0o700);
    builder.create(folder)
}

/// Checks that `folder`, a path without links, is the user's own, that no other user may write to it, and that no other
/// user can put another one in its place.
pub(super) fn check(folder: &Path, owner: Owner) -> io::Result<()> {
    #[cfg(unix)]
    {
        let data = fs::symlink_metadata(folder)?;
        if data.uid() != owner.user {
            return Err(io::Error::other("it belongs to another user; choose another folder"));
        }
        if data.mode() & 0o022 != 0 {
            return Err(io::Error::other(
                "others may write to it, and may have put code there: delete it, or choose another folder",
            ));
        }
        for above in folder.ancestors().skip(1) {
            check_above(above, &fs::symlink_metadata(above)?, owner)?;
        }
    }
    #[cfg(not(unix))]
    let _ = (folder, owner);
    Ok(())
}

/// Checks that only the user and the system's administrator can rename what is in the folder `above`. With the sticky
/// bit, only the owners of what is in it can.
#[cfg(unix)]
fn check_above(above: &Path, data: &Metadata, owner: Owner) -> io::Result<()> {
    const ADMINISTRATOR: u32 = 0;
    const STICKY: u32 = 0o1000;
    if data.uid() != owner.user && data.uid() != ADMINISTRATOR {
        return Err(io::Error::other(format!(
            "{}, above it, belongs to another user, who can replace it; choose another folder",
            above.display()
        )));
    }
    // Many systems give each user a group of the same number, which has no other members.
    let by_group = data.mode() & 0o020 != 0 && data.gid() != data.uid();
    let by_all = data.mode() & 0o002 != 0;
    if (by_group || by_all) && data.mode() & STICKY == 0 {
        return Err(io::Error::other(format!(
            "others may write to {}, above it, and so can replace it: take their permission away or set its sticky bit, or choose another folder",
            above.display()
        )));
    }
    Ok(())
}

/// Takes all permissions for a file from others.
pub(super) fn restrict(file: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        fs::set_permissions(file, fs::Permissions::from_mode(0o600))
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        Ok(())
    }
}
