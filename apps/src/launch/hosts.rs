//! Which node runs on which machine.

use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The place where a node runs: the name of a machine, or `None` for this machine.
pub type Place = Option<String>;

/// The machines of a host file, with the number of nodes that each takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts {
    file: PathBuf,
    machines: Vec<(String, usize)>,
}

impl Hosts {
    /// Reads a host file: one machine a line, as in `HOST slots=N`; one slot if nothing is said; `#` begins a comment.
    ///
    /// # Errors
    /// [`Error::Usage`] if it can't be read or is no such file.
    pub fn read(file: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(file)
            .map_err(|error| Error::Usage(format!("cannot read the host file `{}`: {error}", file.display())))?;
        Self::parse(file, &text)
    }

    fn parse(file: &Path, text: &str) -> Result<Self> {
        let mut machines = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
            let Some(host) = words.next() else { continue };
            let wrong = |found: &str| {
                let (file, line) = (file.display(), number + 1);
                Error::Usage(format!("`{file}`, line {line}: expected `HOST slots=N`, found `{found}`"))
            };
            if host.starts_with('-') || host.contains('=') {
                return Err(wrong(host));
            }
            let host = match without_brackets(host) {
                Ok(host) => host,
                Err(Some((name, port))) => {
                    let (file, line) = (file.display(), number + 1);
                    return Err(Error::Usage(format!(
                        "`{file}`, line {line}: expected `HOST slots=N`, found `{host}`: write `{name} slots=N` for so many nodes; \
                         a port goes to ssh, as in `--ssh 'ssh -p {port}'`"
                    )));
                }
                Err(None) => return Err(wrong(host)),
            };
            let mut slots = None;
            for word in words {
                let value = word.strip_prefix("slots=").and_then(|value| value.parse().ok());
                let value: usize = value.filter(|&slots| slots > 0).ok_or_else(|| wrong(word))?;
                if let Some(before) = slots.replace(value) {
                    let (file, line) = (file.display(), number + 1);
                    return Err(Error::Usage(format!(
                        "`{file}`, line {line}: `slots={before}` and `{word}` both say how many nodes the machine takes: leave one out"
                    )));
                }
            }
            machines.push((host, slots.unwrap_or(1)));
        }
        Ok(Self { file: file.to_owned(), machines })
    }

    /// Returns the place of each node, by rank. Each machine is filled before the next one. There are as many nodes as
    /// are asked for, or else as there are slots.
    ///
    /// # Errors
    /// [`Error::Usage`] if there are fewer slots than nodes, or none.
    pub fn places(&self, nodes: Option<usize>) -> Result<Vec<Place>> {
        let slots = self.machines.iter().flat_map(|(host, slots)| std::iter::repeat_n(host, *slots));
        let available = self.machines.iter().fold(0_usize, |sum, (_, slots)| sum.saturating_add(*slots));
        let wanted = nodes.unwrap_or(available);
        if wanted == 0 || wanted > available || wanted > 1 << 16 {
            let file = self.file.display();
            return Err(Error::Usage(match wanted {
                0 => format!("`{file}` lists no machine: write one a line, as in `HOST slots=N`"),
                _ if wanted > available => {
                    format!(
                        "{wanted} nodes need as many slots, but `{file}` has {available}: raise `slots=N`, or add machines"
                    )
                }
                _ => {
                    format!("`{file}` has {available} slots, but a job has at most 65,536 nodes: say how many with -n")
                }
            }));
        }
        Ok(slots.take(wanted).cloned().map(Some).collect())
    }
}

/// A machine as ssh wants it: it knows addresses of IPv6 without the brackets that tell them from a port. What is no
/// machine, or a machine and a port, is refused.
fn without_brackets(machine: &str) -> Result<String, Option<(&str, &str)>> {
    let (user, host) = match machine.rsplit_once('@') {
        Some((user, host)) => (format!("{user}@"), host),
        None => (String::new(), machine),
    };
    // The zone of an address, as in `fe80::1%eth0`, is a name of its own.
    let is_ipv6 = |host: &str| host.split('%').next().is_some_and(|address| address.parse::<Ipv6Addr>().is_ok());
    if let Some((address, rest)) = host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        return match rest.strip_prefix(':') {
            _ if !is_ipv6(address) => Err(None),
            None if rest.is_empty() => Ok(user + address),
            Some(port) if !port.is_empty() => Err(Some((&machine[..machine.len() - rest.len()], port))),
            _ => Err(None),
        };
    }
    match host.split_once(':') {
        None if host.contains(['[', ']']) => Err(None),
        None => Ok(user + host),
        Some(_) if is_ipv6(host) => Ok(user + host),
        Some((_, port)) if !port.contains(':') => Err(Some((&machine[..machine.len() - port.len() - 1], port))),
        Some(_) => Err(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(text: &str) -> Result<Hosts> {
        Hosts::parse(Path::new("machines"), text)
    }

    fn places(text: &str, nodes: Option<usize>) -> Vec<String> {
        hosts(text).unwrap().places(nodes).unwrap().into_iter().flatten().collect()
    }

    #[test]
    fn each_machine_is_filled_before_the_next_one() {
        let text = "# ours\na slots=2\n\n me@b   # one slot\nc slots=3";
        assert_eq!(places(text, None), ["a", "a", "me@b", "c", "c", "c"]);
        assert_eq!(places(text, Some(3)), ["a", "a", "me@b"]);
    }

    #[test]
    fn what_is_no_machine_is_refused_with_its_line() {
        for (text, wrong) in [
            ("a\nb slots=two", "`slots=two`"),
            ("a\nb slots=0", "`slots=0`"),
            ("a\nb 4", "`4`"),
            ("a\n-oProxyCommand=evil", "`-oProxyCommand=evil`"),
            ("a\nslots=2", "`slots=2`"),
            ("a\nb:4", "`b:4`: write `b slots=N`"),
            ("a\nme@[::1]:4", "`me@[::1]:4`: write `me@[::1] slots=N`"),
            ("a\n[::1", "`[::1`"),
            ("a\n::1]", "`::1]`"),
            ("a\n[b]", "`[b]`"),
            ("a\n[::1]x", "`[::1]x`"),
            ("a\nb:c:d", "`b:c:d`"),
        ] {
            let error = hosts(text).unwrap_err().to_string();
            assert!(error.starts_with("`machines`, line 2: ") && error.contains(wrong), "{error}");
        }
    }

    #[test]
    fn slots_are_said_once() {
        let error = hosts("a slots=2\nb slots=2 slots=3").unwrap_err().to_string();
        assert_eq!(
            error,
            "`machines`, line 2: `slots=2` and `slots=3` both say how many nodes the machine takes: leave one out"
        );
        assert!(hosts("a slots=2 slots=2").is_err());
    }

    #[test]
    fn a_machine_may_be_an_address() {
        let text = "10.0.0.1\nfe80::1%eth0\n[::1]\nme@[fd00::7]\nme@fd00::8";
        assert_eq!(places(text, None), ["10.0.0.1", "fe80::1%eth0", "::1", "me@fd00::7", "me@fd00::8"]);
    }

    #[test]
    fn there_are_no_more_nodes_than_slots() {
        let error = hosts("a slots=2").unwrap().places(Some(3)).unwrap_err().to_string();
        assert!(error.contains("3 nodes") && error.contains("`machines` has 2"), "{error}");
        let error = hosts("# nobody").unwrap().places(None).unwrap_err().to_string();
        assert!(error.contains("lists no machine"), "{error}");
        let error = hosts("a slots=70000").unwrap().places(None).unwrap_err().to_string();
        assert!(error.contains("at most 65,536"), "{error}");
    }
}
