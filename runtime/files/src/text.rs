//! Lines of text files, of which nothing is taken for granted.

use std::fmt::Write as _;
use std::io::{BufRead, Read};

use crate::error::{Problem, ReadError};

/// The longest line that is read, in bytes. Matrix Market's own limit is 1024; a file without line ends must not fill
/// the memory.
const LONGEST: usize = 64 << 10;

/// The lines of a file, one at a time.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    text: R,
    /// The byte with which comments begin.
    comment: u8,
    /// The number of the last line read.
    line: u64,
    buffer: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(text: R, comment: u8) -> Self {
        Self { text, comment, line: 0, buffer: Vec::new() }
    }

    /// The source of the lines: it may have been read beyond the last one.
    pub(crate) fn source(&self) -> &R {
        &self.text
    }

    /// The number of the last line read, from 1; 0 before.
    pub(crate) fn number(&self) -> u64 {
        self.line
    }

    /// The start of the next line whatever it is, at most [`LONGEST`] and one bytes; [`Lines::text`] gives it as text.
    pub(crate) fn raw(&mut self) -> Result<Option<&[u8]>, ReadError> {
        self.buffer.clear();
        let mut limited = (&mut self.text).take(LONGEST as u64 + 1);
        if limited.read_until(b'\n', &mut self.buffer)? == 0 {
            return Ok(None);
        }
        self.line += 1;
        Ok(Some(&self.buffer))
    }

    /// Reads the next line where it is in the memory of the reader, as `parse` does, which is given what is there from
    /// the line on, and gives what the line has and how many bytes it is with its end. If that is nothing, or the line
    /// is too long, it is still to be read.
    #[inline]
    pub(crate) fn quick<V>(&mut self, parse: impl FnOnce(&[u8]) -> Option<(V, usize)>) -> Result<Option<V>, ReadError> {
        let Some((value, length)) = parse(self.text.fill_buf()?).filter(|(_, length)| *length <= LONGEST) else {
            return Ok(None);
        };
        self.text.consume(length);
        self.buffer.clear();
        self.line += 1;
        Ok(Some(value))
    }

    /// Passes the next line that is neither empty nor a comment; false if there is none.
    #[inline]
    pub(crate) fn pass(&mut self) -> Result<bool, ReadError> {
        let comment = self.comment;
        let plain = |text: &[u8]| {
            let line = &text[..text.iter().position(|&byte| byte == b'\n')?];
            let is_plain = line.is_ascii() && line.first().is_some_and(|&first| first > b' ' && first != comment);
            is_plain.then_some(((), line.len() + 1))
        };
        Ok(self.quick(plain)?.is_some() || self.next()?.is_some())
    }

    /// The line that was read last, without blanks around it.
    pub(crate) fn text(&self) -> Result<&str, ReadError> {
        if self.buffer.len() > LONGEST {
            let start = shown(&self.buffer);
            let reason = format!("the line that starts with '{start}' is longer than {LONGEST} bytes");
            return Err(self.wrong(Problem::Malformed(reason)));
        }
        std::str::from_utf8(&self.buffer).map(str::trim).map_err(|error| {
            let found = shown(&self.buffer[error.valid_up_to()..]);
            self.wrong(Problem::Malformed(format!("'{found}' is not text")))
        })
    }

    /// The next line that is neither empty nor a comment.
    pub(crate) fn next(&mut self) -> Result<Option<&str>, ReadError> {
        match self.raw()? {
            Some(_) => self.this_or_next(),
            None => Ok(None),
        }
    }

    /// The line that was read last, or the first one after it, that is neither empty nor a comment.
    pub(crate) fn this_or_next(&mut self) -> Result<Option<&str>, ReadError> {
        loop {
            // Comments are in whatever encoding; those without an end are not read to it.
            let is_comment = self.buffer.trim_ascii_start().first() == Some(&self.comment);
            let is_left_out = is_comment && self.buffer.len() <= LONGEST || self.text()?.is_empty();
            if !is_left_out {
                // The borrow checker can't see that the loop ends here: the line is taken again.
                return self.text().map(Some);
            }
            if self.raw()?.is_none() {
                return Ok(None);
            }
        }
    }

    /// An error in the line that was read last.
    pub(crate) fn wrong(&self, problem: Problem) -> ReadError {
        ReadError::Line { line: self.line.max(1), problem }
    }
}

/// How packed files start, and what packs them.
const PACKED: [(&[u8], &str); 5] = [
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ", "xz"),
    (b"PK\x03\x04", "zip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
];

/// The known compression of a file that starts like this, and what to do about it.
pub(crate) fn packed(start: &[u8]) -> Option<Problem> {
    let (_, packer) = PACKED.iter().find(|(magic, _)| start.starts_with(magic))?;
    Some(Problem::Foreign(format!("the file is packed with {packer}; unpack it first")))
}

/// The known format other than lines of plain text of a file that starts like this, and what to do about it.
pub(crate) fn foreign(start: &[u8]) -> Option<Problem> {
    let told = |reason: &str| Some(Problem::Foreign(reason.to_owned()));
    if let Some(problem) = packed(start) {
        return Some(problem);
    }
    if start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff") {
        return told("the file is text in UTF-16; save it in UTF-8");
    }
    if start.starts_with(b"\xef\xbb\xbf") {
        return told("the file starts with a byte order mark; save it without");
    }
    let line_end = start.iter().take(LONGEST).position(|&byte| byte == b'\r')?;
    let is_alone = start.get(line_end + 1).is_some_and(|&next| next != b'\n');
    if is_alone && start.starts_with(b"%%") {
        return told("lines end with a carriage return alone, as on old Macs; end them with line feeds");
    }
    None
}

/// How much of a line is fit for a message, in characters.
const SHOWN: usize = 40;

/// The start of a line; what can't be printed is escaped.
pub(crate) fn shown(line: impl AsRef<[u8]>) -> String {
    let line = line.as_ref().trim_ascii_end();
    let mut text = String::new();
    for (count, piece) in line.utf8_chunks().flat_map(pieces).enumerate() {
        if count == SHOWN {
            text += "...";
            break;
        }
        text += &piece;
    }
    text
}

/// The characters of a chunk and the bytes after it that are none, each as it is shown.
fn pieces(chunk: std::str::Utf8Chunk<'_>) -> impl Iterator<Item = String> {
    let character = |c: char| match c {
        '\'' | '"' => c.to_string(),
        _ => c.escape_debug().to_string(),
    };
    let byte = |byte: &u8| {
        let mut text = String::new();
        // A string takes everything.
        let _ = write!(text, "\\x{byte:02x}");
        text
    };
    chunk.valid().chars().map(character).chain(chunk.invalid().iter().map(byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, BufReader};

    fn lines(text: &[u8]) -> Lines<&[u8]> {
        Lines::new(text, b'%')
    }

    #[test]
    fn comments_and_empty_lines_are_left_out_and_counted() {
        let mut lines = lines(b"% one\n\n  two \r\n%three\nfour");
        for (line, number) in [("two", 3), ("four", 5)] {
            assert_eq!(lines.next().unwrap(), Some(line));
            assert_eq!(lines.number(), number);
        }
        assert_eq!(lines.next().unwrap(), None);
    }

    #[test]
    fn a_line_without_end_is_refused_before_it_fills_the_memory() {
        let mut endless = Lines::new(BufReader::new((&b"1 2\n"[..]).chain(io::repeat(b'7'))), b'%');
        assert_eq!(endless.next().unwrap(), Some("1 2"));
        let start = "7".repeat(SHOWN);
        let message = format!("line 2: the line that starts with '{start}...' is longer than 65536 bytes");
        assert_eq!(endless.next().unwrap_err().to_string(), message);
        assert!(endless.buffer.capacity() < 4 * LONGEST, "{}", endless.buffer.capacity());
    }

    #[test]
    fn the_longest_line_is_read_with_its_end_or_without() {
        let longest = vec![b'7'; LONGEST - 1];
        for end in [&b"\n"[..], b"7"] {
            let text = [&longest, end].concat();
            assert_eq!(lines(&text).next().unwrap().map(|line| line.len() >= LONGEST - 1), Some(true));
        }
        let text = [&longest[..], b"77"].concat();
        assert!(lines(&text).next().is_err());
    }

    #[test]
    fn comments_are_in_any_encoding() {
        let mut lines = lines(b"% Universit\xe4t\n  %\xff\xfe\r\n1 1\n% \xe9");
        assert_eq!(lines.next().unwrap(), Some("1 1"));
        assert_eq!(lines.next().unwrap(), None);
        assert_eq!(lines.number(), 4);
    }

    #[test]
    fn what_is_not_text_is_shown_in_escapes() {
        let message = lines(b"1 1 \xff\x00\n").next().unwrap_err().to_string();
        assert_eq!(message, r"line 1: '\xff\0' is not text");
    }

    #[test]
    fn what_is_shown_is_short_and_printable() {
        assert_eq!(shown("a 'b'\r\n"), "a 'b'");
        assert_eq!(shown("a\tb\0"), r"a\tb\0");
        assert_eq!(shown("\u{feff}é"), r"\u{feff}é");
        assert_eq!(shown([0; 100]), format!("{}...", r"\0".repeat(SHOWN)));
        assert_eq!(shown("x".repeat(SHOWN)), "x".repeat(SHOWN));
    }

    #[test]
    fn known_files_that_are_not_lines_of_text_are_told() {
        for (magic, packer) in PACKED {
            let told = foreign(magic).map(|problem| problem.to_string());
            assert_eq!(told, Some(format!("the file is packed with {packer}; unpack it first")));
        }
        let told = |start: &[u8], what: &str| {
            assert!(foreign(start).is_some_and(|told| told.to_string().contains(what)), "{what}")
        };
        told(b"\xff\xfe%\x00", "UTF-16");
        told(b"\xef\xbb\xbf%%MatrixMarket", "byte order mark");
        told(b"%%MatrixMarket matrix\r1 1 1\r", "carriage return");
        for fine in [&b"%%MatrixMarket matrix\r\n"[..], b"%%MatrixMarket matrix\r", b"", b"1 1\n", b"\x00\r\x00"] {
            assert_eq!(foreign(fine), None, "{fine:?}");
        }
    }
}
