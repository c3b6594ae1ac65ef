//! How what nodes print is shown: whole lines, each with the number of its node before it.
//!
//! A line is kept until it is whole, and then shown in one piece with others that have come with it. One that is longer
//! than `LONGEST` is shown as it comes, and has the [`Screen`] to itself until it ends: lines of other nodes wait. They
//! do not wait for ever, since the node may in turn wait for them: when as much waits as a line may be long, the long
//! line is cut. So the memory is bounded, no node is held up by another one, and a line stays whole unless it is longer
//! than that *and* others print more than that meanwhile.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use console::Color;

/// Bytes of a line that are kept until it is whole, and of all lines that wait for a longer one.
const LONGEST: usize = 1 << 20;

/// Bytes that are read at once.
const CHUNK: usize = 64 << 10;

const COLOURS: [Color; 6] = [Color::Cyan, Color::Green, Color::Yellow, Color::Magenta, Color::Blue, Color::Red];

/// How lines are shown.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// How many nodes there are.
    pub nodes: usize,
    /// Whether their numbers are shown.
    pub has_prefix: bool,
    /// Whether the numbers are coloured.
    pub coloured: bool,
}

impl Style {
    /// The text before each line of a node: its number, or nothing.
    #[must_use]
    pub fn prefix(&self, rank: usize) -> String {
        if !self.has_prefix {
            return String::new();
        }
        let width = (self.nodes - 1).to_string().len();
        let number = format!("[{rank:>width$}]");
        let colour = console::Style::new().fg(COLOURS[rank % COLOURS.len()]).force_styling(self.coloured);
        format!("{} ", colour.apply_to(number))
    }
}

/// An output that shows the lines of several sources.
pub struct Screen {
    state: Mutex<ScreenState>,
}

struct ScreenState {
    to: Box<dyn Write + Send>,
    /// The source whose line has begun and goes on.
    open: Option<usize>,
    /// A source has ended without ending its line, which is ended if anything follows.
    is_unended: bool,
    /// Whole lines that wait until that one has ended.
    waiting: Vec<u8>,
    /// Why writing has failed; then nothing is shown any more.
    failure: Option<io::Error>,
}

impl Screen {
    /// Shows lines by writing them.
    #[must_use]
    pub fn new(to: impl Write + Send + 'static) -> Self {
        let (to, waiting) = (Box::new(to), Vec::new());
        Self { state: Mutex::new(ScreenState { to, open: None, is_unended: false, waiting, failure: None }) }
    }

    /// Standard output and standard error: one and the same screen if both go to one file, pipe or terminal.
    #[must_use]
    pub fn both() -> [Arc<Self>; 2] {
        let (stdout, stderr) = (io::stdout(), io::stderr());
        let (is_of, errors_are_of) = (file(stdout.as_fd()), file(stderr.as_fd()));
        let out = Arc::new(Self::new(stdout));
        let err = if is_of.is_some() && is_of == errors_are_of { Arc::clone(&out) } else { Self::new(stderr).into() };
        [out, err]
    }

    /// Whether a thread is writing just now: then the reader takes its time.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        matches!(self.state.try_lock(), Err(TryLockError::WouldBlock))
    }

    /// Shows a line at once, even if it cuts another one.
    pub fn tell(&self, line: &str) {
        let mut state = self.lock();
        // The reader may be gone.
        let _ = state.cut().and_then(|()| state.write(line.as_bytes()));
    }

    fn lock(&self) -> MutexGuard<'_, ScreenState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Which file a descriptor is of.
fn file(descriptor: BorrowedFd<'_>) -> Option<(u64, u64)> {
    let file = File::from(descriptor.try_clone_to_owned().ok()?).metadata().ok()?;
    Some((file.dev(), file.ino()))
}

fn same(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

impl ScreenState {
    fn write(&mut self, text: &[u8]) -> io::Result<()> {
        if let Some(failure) = &self.failure {
            return Err(same(failure));
        }
        if text.is_empty() {
            return Ok(());
        }
        let end: &[u8] = if std::mem::take(&mut self.is_unended) { b"\n" } else { b"" };
        let written = self.to.write_all(end).and_then(|()| self.to.write_all(text)).and_then(|()| self.to.flush());
        self.failure = written.as_ref().err().map(same);
        written
    }

    /// Shows whole lines, or has them wait.
    fn show(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.open.is_none() {
            return if lines.is_empty() { Ok(()) } else { self.write(lines) };
        }
        self.waiting.extend_from_slice(lines);
        if self.waiting.len() > LONGEST { self.cut() } else { Ok(()) }
    }

    /// Ends the line that goes on, if there is one, where it is.
    fn cut(&mut self) -> io::Result<()> {
        if self.open.is_some() { self.close(b"\n") } else { Ok(()) }
    }

    /// Shows the last of a source, whose line goes on or is none that others wait for.
    fn end_as_it_is(&mut self, last: &[u8]) -> io::Result<()> {
        self.open = None;
        self.write(last)?;
        self.is_unended = true;
        let waiting = std::mem::take(&mut self.waiting);
        self.show(&waiting)
    }

    /// Shows the last of the line that goes on, and what has waited for its end.
    fn close(&mut self, last: &[u8]) -> io::Result<()> {
        self.open = None;
        self.write(last)?;
        let waiting = std::mem::take(&mut self.waiting);
        self.show(&waiting)
    }
}

/// Shows all that comes from a source, line by line, until the end, or until it cannot be shown.
///
/// # Errors
/// Why something could not be shown. That reading fails is the end.
pub fn show(mut from: impl Read, source: usize, prefix: &str, screen: &Screen) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    let mut lines = Lines { source, prefix: prefix.as_bytes(), rest: Vec::new() };
    loop {
        match from.read(&mut chunk) {
            Ok(0) => return lines.end(screen),
            Ok(count) => lines.add(&chunk[..count], screen)?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return lines.end(screen),
        }
    }
}

/// The lines of a source.
struct Lines<'a> {
    source: usize,
    prefix: &'a [u8],
    /// The beginning of a line that is not whole.
    rest: Vec<u8>,
}

impl Lines<'_> {
    fn add(&mut self, mut text: &[u8], screen: &Screen) -> io::Result<()> {
        let mut screen = screen.lock();
        if screen.open == Some(self.source) {
            let Some(end) = text.iter().position(|&byte| byte == b'\n') else { return screen.write(text) };
            screen.close(&text[..=end])?;
            text = &text[end + 1..];
        }
        let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        let mut lines = Vec::new();
        for line in text[..whole].split_inclusive(|&byte| byte == b'\n') {
            lines.extend_from_slice(self.prefix);
            lines.append(&mut self.rest);
            lines.extend_from_slice(line);
        }
        screen.show(&lines)?;
        self.rest.extend_from_slice(&text[whole..]);
        if self.rest.len() > LONGEST {
            screen.cut()?;
            screen.open = Some(self.source);
            let rest = std::mem::take(&mut self.rest);
            screen.write(&[self.prefix, &rest].concat())?;
        }
        Ok(())
    }

    /// The last line ends even if the node did not end it: at once if it has a number before it, else when something
    /// follows. What is shown without numbers may be no text, and is shown as it is.
    fn end(self, screen: &Screen) -> io::Result<()> {
        let mut screen = screen.lock();
        let is_open = screen.open == Some(self.source);
        if !is_open && self.rest.is_empty() {
            return Ok(());
        }
        if self.prefix.is_empty() && (is_open || screen.open.is_none()) {
            return screen.end_as_it_is(&self.rest);
        }
        match is_open {
            true => screen.cut(),
            false => screen.show(&[self.prefix, &self.rest, b"\n"].concat()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps what is shown.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Kept {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    fn screen() -> (Screen, Kept) {
        let kept = Kept::default();
        (Screen::new(kept.clone()), kept)
    }

    fn source(source: usize, prefix: &str) -> Lines<'_> {
        Lines { source, prefix: prefix.as_bytes(), rest: Vec::new() }
    }

    fn shown(bytes: &[u8]) -> String {
        let (screen, kept) = screen();
        show(bytes, 1, "[1] ", &screen).unwrap();
        kept.text()
    }

    #[test]
    fn every_line_has_the_number_of_its_node() {
        assert_eq!(shown(b"one\n\ntwo\n"), "[1] one\n[1] \n[1] two\n");
        assert_eq!(shown(b""), "");
    }

    #[test]
    fn the_last_line_ends_even_if_the_node_did_not_end_it() {
        assert_eq!(shown(b"one\ntwo"), "[1] one\n[1] two\n");
    }

    #[test]
    fn what_is_shown_without_numbers_has_no_end_that_the_node_did_not_give_it() {
        let bytes = [0, 7, b'\n', 255, 0];
        let (screen, kept) = screen();
        show(&bytes[..], 0, "", &screen).unwrap();
        assert_eq!(*kept.0.lock().unwrap(), bytes);
        let long = vec![b'x'; 2 * LONGEST];
        show(&long[..], 1, "", &screen).unwrap();
        assert!(
            *kept.0.lock().unwrap() == [&bytes[..], &b"\n"[..], &long[..]].concat(),
            "a line of its own, without an end"
        );
        screen.tell("words\n");
        assert!(kept.0.lock().unwrap().ends_with(b"x\nwords\n"));
    }

    #[test]
    fn a_line_of_any_length_is_one_line() {
        for length in [CHUNK - 1, CHUNK, CHUNK + 1, LONGEST - 1, LONGEST, LONGEST + 1, 3 * LONGEST + 7] {
            let line = "x".repeat(length);
            assert!(shown(format!("{line}\nend\n").as_bytes()) == format!("[1] {line}\n[1] end\n"), "{length}");
            assert!(shown(line.as_bytes()) == format!("[1] {line}\n"), "{length} without an end");
        }
    }

    #[test]
    fn lines_of_others_wait_until_a_long_one_has_ended() {
        let (screen, kept) = screen();
        let [mut long, mut short] = [source(0, "[0] "), source(1, "[1] ")];
        let begun = "x".repeat(LONGEST + 1);
        long.add(begun.as_bytes(), &screen).unwrap();
        short.add(b"one\ntw", &screen).unwrap();
        short.add(b"o\nthree", &screen).unwrap();
        long.add(b"yy", &screen).unwrap();
        assert!(kept.text() == format!("[0] {begun}yy"));
        long.add(b"z\nnext\n", &screen).unwrap();
        short.end(&screen).unwrap();
        assert!(kept.text() == format!("[0] {begun}yyz\n[1] one\n[1] two\n[0] next\n[1] three\n"));
    }

    #[test]
    fn a_line_is_cut_if_others_would_have_to_wait_with_more_than_there_is_room_for() {
        let (screen, kept) = screen();
        let [mut long, mut others] = [source(0, "[0] "), source(1, "[1] ")];
        let begun = "x".repeat(LONGEST + 1);
        long.add(begun.as_bytes(), &screen).unwrap();
        let lines = "words of another node\n".repeat(LONGEST / 22 + 1);
        others.add(lines.as_bytes(), &screen).unwrap();
        long.add(b"rest\n", &screen).unwrap();
        assert!(kept.text().starts_with(&format!("[0] {begun}\n[1] words of")));
        assert!(kept.text().ends_with("node\n[0] rest\n"));
    }

    #[test]
    fn of_two_lines_without_an_end_both_go_on_in_pieces() {
        let (screen, kept) = screen();
        let [mut first, mut second] = [source(0, "[0] "), source(1, "[1] ")];
        let begun = "x".repeat(LONGEST + 1);
        first.add(begun.as_bytes(), &screen).unwrap();
        second.add(begun.as_bytes(), &screen).unwrap();
        second.add(b"y", &screen).unwrap();
        first.end(&screen).unwrap();
        assert!(kept.text() == format!("[0] {begun}\n[1] {begun}y"));
        second.end(&screen).unwrap();
        assert!(kept.text().ends_with("xy\n"));
    }

    #[test]
    fn what_is_urgent_does_not_wait_for_a_long_line() {
        let (screen, kept) = screen();
        let mut long = source(0, "[0] ");
        let begun = "x".repeat(LONGEST + 1);
        long.add(begun.as_bytes(), &screen).unwrap();
        screen.tell("urgent\n");
        long.add(b"rest\n", &screen).unwrap();
        assert!(kept.text() == format!("[0] {begun}\nurgent\n[0] rest\n"));
    }

    #[test]
    fn all_hear_why_a_screen_has_failed() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let screen = Screen::new(Full);
        let kind = |rank, text: &'static str| show(text.as_bytes(), rank, "", &screen).unwrap_err().kind();
        assert_eq!([kind(0, "a\n"), kind(1, "b\n")], [io::ErrorKind::StorageFull; 2]);
    }

    #[test]
    fn numbers_stand_below_each_other() {
        let style = Style { nodes: 11, has_prefix: true, coloured: false };
        assert_eq!((style.prefix(2), style.prefix(10)), ("[ 2] ".to_owned(), "[10] ".to_owned()));
        assert_eq!(Style { nodes: 10, ..style }.prefix(2), "[2] ");
        assert_eq!(Style { has_prefix: false, ..style }.prefix(2), "");
    }

    #[test]
    fn numbers_are_coloured_if_asked_for_and_lines_are_not() {
        let style = Style { nodes: 2, has_prefix: true, coloured: true };
        assert_eq!(style.prefix(1), "\u{1b}[32m[1]\u{1b}[0m ");
        assert_ne!(style.prefix(0)[..5], style.prefix(1)[..5]);
    }
}
