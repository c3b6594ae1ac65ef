//! Serving the page to a browser on this machine.

use std::io::{self, Write};

use tiny_http::{Header, Method, Request, Response, Server};

use crate::error::{Error, Result};

/// A page, and where it is served.
pub struct PageServer {
    server: Server,
    page: String,
}

impl PageServer {
    /// Serves a page to this machine alone, at a port, or at any that is free.
    ///
    /// # Errors
    /// [`Error::Serve`] if the port is in use.
    pub fn bind(page: String, port: Option<u16>) -> Result<Self> {
        let server = Server::http(("127.0.0.1", port.unwrap_or(0)));
        let server = server.map_err(|source| Error::Serve { port, source: io::Error::other(source.to_string()) })?;
        Ok(Self { server, page })
    }

    /// The page's address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/", self.server.server_addr())
    }

    /// Answers all requests, until the program is ended.
    pub fn serve(&self) {
        for request in self.server.incoming_requests() {
            self.answer(request);
        }
    }

    fn answer(&self, request: Request) {
        let found = match (request.method(), request.url(), is_for_this_machine(&request)) {
            (Method::Get | Method::Head, "/", true) => Response::from_string(&self.page)
                .with_chunked_threshold(usize::MAX)
                .with_header(header("Content-Type", "text/html; charset=utf-8"))
                .with_header(header("Cache-Control", "no-store")),
            (Method::Get | Method::Head, _, true) => {
                Response::from_string("there is one page, at /\n").with_status_code(404)
            }
            (_, _, true) => Response::from_string("pages can only be read\n").with_status_code(405),
            (_, _, false) => Response::from_string("for this machine only\n").with_status_code(403),
        };
        // A reader that goes away has read enough.
        let _ = request.respond(found);
    }
}

/// Whether a request names this machine, so that no page from elsewhere reads the profile under a name of its own.
fn is_for_this_machine(request: &Request) -> bool {
    let host = request.headers().iter().find(|header| header.field.equiv("Host")).map(|header| header.value.as_str());
    let name = host.map(|host| host.rsplit_once(':').map_or(host, |(name, _)| name));
    matches!(name, Some("127.0.0.1" | "localhost"))
}

fn header(name: &str, value: &str) -> Header {
    Header::from_bytes(name, value).expect("the text is a header")
}

/// Tells where the page is, and opens it if asked to.
///
/// # Errors
/// [`Error::Output`] if the output cannot be written.
pub fn announce(url: &str, open: bool) -> Result<()> {
    writeln!(io::stdout(), "serving the profile at {url} (Ctrl-C ends it)")?;
    io::stdout().flush()?;
    if open && let Err(error) = open::that(url) {
        writeln!(io::stderr(), "warning: no browser could be opened ({error}); go to {url} yourself")?;
    }
    Ok(())
}
