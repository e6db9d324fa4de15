//! Where the report goes: a file that is replaced, or something else that stays what it is.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(crate) struct Place {
    path: PathBuf,
    /// What is no plain file, open for as long as the program runs: a link, a pipe, a device.
    kept: Option<File>,
}

impl Place {
    /// Finds out whether it can be written, without touching what it holds. A pipe waits for its reader.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let path = path.to_owned();
        if is_replaceable(&path)? {
            let (beside, _) = beside(&path)?;
            fs::remove_file(beside)?;
            return Ok(Place { path, kept: None });
        }
        // A link may lead to what is not there yet. What it leads to may hold something, which stays until there is a report.
        let kept = OpenOptions::new().write(true).create(true).truncate(false).open(&path)?;
        Ok(Place { path, kept: Some(kept) })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the next contents. In a file of its own they come in one piece: the old or the new. A pipe gets one after
    /// the other.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        if let Some(mut kept) = self.kept.as_ref() {
            // Behind a link there may be a file that was longer.
            let is_file = kept.metadata()?.is_file();
            if is_file {
                kept.set_len(0)?;
                kept.rewind()?;
            }
            kept.write_all(bytes)?;
            return if is_file { kept.sync_all() } else { Ok(()) };
        }
        if !is_replaceable(&self.path)? {
            return Err(io::Error::other("it was a file, and is something else now"));
        }
        let (beside, mut file) = beside(&self.path)?;
        let mut replace = || {
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&beside, &self.path)
        };
        replace().inspect_err(|_| {
            // It is this program's, and of no use.
            let _ = fs::remove_file(&beside);
        })
    }
}

/// Whether it is a plain file, or nothing yet. To rename something over a link, a pipe or a device would put a file in its
/// place, which only some users may do: root may, to the devices of the whole machine.
fn is_replaceable(path: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(known) => Ok(known.is_file()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

/// A new file for the next contents. One that has its name already is somebody's.
fn beside(path: &Path) -> io::Result<(PathBuf, File)> {
    let mut name = OsString::from(path);
    name.push(format!(".{}.part", std::process::id()));
    let name = PathBuf::from(name);
    match OpenOptions::new().write(true).create_new(true).open(&name) {
        Ok(file) => Ok((name, file)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(io::Error::new(error.kind(), format!("{} is there already", name.display())))
        }
        Err(error) => Err(error),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::{FileTypeExt, symlink};

    /// A folder that is removed at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("place-{name}-{}", std::process::id()));
            fs::create_dir(&folder).unwrap();
            Folder(folder)
        }

        fn names(&self) -> Vec<OsString> {
            let mut names: Vec<_> = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_file_is_replaced_and_those_beside_it_are_not() {
        let folder = Folder::new("file");
        let (path, other) = (folder.0.join("report"), folder.0.join("report.part"));
        fs::write(&other, "somebody's").unwrap();
        let place = Place::open(&path).unwrap();
        assert!(!path.exists(), "nothing is touched before there is a report");
        for text in ["a long one", "short"] {
            place.write(text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(fs::read_to_string(other).unwrap(), "somebody's");
        assert_eq!(folder.names(), ["report", "report.part"]);
        let taken = folder.0.join(format!("report.{}.part", std::process::id()));
        fs::write(&taken, "somebody's").unwrap();
        assert!(place.write(b"x").unwrap_err().to_string().contains(".part is there already"));
        assert!(Place::open(&path).is_err());
        assert_eq!(fs::read_to_string(taken).unwrap(), "somebody's");
    }

    #[test]
    fn a_link_stays_one() {
        let folder = Folder::new("link");
        let (link, target) = (folder.0.join("link"), folder.0.join("target"));
        symlink("target", &link).unwrap();
        let place = Place::open(&link).unwrap();
        for text in ["a long one", "short"] {
            place.write(text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&target).unwrap(), text);
        }
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(folder.names(), ["link", "target"]);
    }

    #[test]
    fn a_socket_or_a_folder_is_refused_and_stays() {
        let folder = Folder::new("socket");
        let path = folder.0.join("socket");
        let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
        Place::open(&path).unwrap_err();
        assert!(fs::symlink_metadata(&path).unwrap().file_type().is_socket());
        Place::open(&folder.0).unwrap_err();
        assert_eq!(folder.names(), ["socket"]);
    }

    #[test]
    fn what_became_a_link_is_not_replaced() {
        let folder = Folder::new("became");
        let path = folder.0.join("report");
        let place = Place::open(&path).unwrap();
        symlink("elsewhere", &path).unwrap();
        place.write(b"x").unwrap_err();
        assert_eq!(folder.names(), ["report"]);
    }

    /// The end of a pipe, by the name that it has as a descriptor.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_pipe_gets_one_after_the_other() {
        use std::io::Read;
        use std::os::fd::AsRawFd;
        let (mut reader, writer) = io::pipe().unwrap();
        let place = Place::open(Path::new(&format!("/proc/self/fd/{}", writer.as_raw_fd()))).unwrap();
        drop(writer);
        let read = std::thread::spawn(move || {
            let mut text = String::new();
            reader.read_to_string(&mut text).map(|_| text)
        });
        place.write(b"one").unwrap();
        place.write(b"two").unwrap();
        drop(place);
        assert_eq!(read.join().unwrap().unwrap(), "onetwo");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_pipe_that_nobody_reads_is_an_error() {
        use std::os::fd::AsRawFd;
        let (reader, writer) = io::pipe().unwrap();
        let place = Place::open(Path::new(&format!("/proc/self/fd/{}", writer.as_raw_fd()))).unwrap();
        drop((reader, writer));
        assert_eq!(place.write(b"x").unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
