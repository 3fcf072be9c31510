//! A screen of its own for each test, without a window manager.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use x11rb::connection::Connection;
use x11rb::protocol::xproto::{AtomEnum, ClientMessageEvent, ConnectionExt, EventMask, Window};

use crate::process::Group;

/// A running Xvfb.
pub struct Display {
    _server: Group,
    /// E.g. `:101`.
    pub name: String,
}

impl Display {
    /// Starts one on a free number.
    pub fn start() -> Self {
        let (read, write) = pipe();
        let mut command = Command::new("Xvfb");
        command.args(["-displayfd", "3", "-screen", "0", "1500x950x24", "-nolisten", "tcp", "-noreset"]);
        let fd = write.as_raw_fd();
        // SAFETY: dup2 is safe to call between fork and exec.
        unsafe {
            command.pre_exec(move || match libc::dup2(fd, 3) {
                -1 => Err(std::io::Error::last_os_error()),
                _ => Ok(()),
            })
        };
        let server = Group::start(&mut command).expect("Xvfb is installed (`make test` does it)");
        drop(write);
        let mut number = String::new();
        BufReader::new(File::from(read)).read_line(&mut number).expect("Xvfb names its number");
        assert!(!number.trim().is_empty(), "Xvfb did not start");
        Self { _server: server, name: format!(":{}", number.trim()) }
    }

    /// Saves a picture of the window. WebKit's driver would wait for the page to draw another frame, and a quiet
    /// page draws none; the display just gives what it shows.
    pub fn picture(&self, title: &str, path: &Path) {
        let (connection, screen) = x11rb::connect(Some(&self.name)).expect("the display answers");
        let Some(window) = find(&connection, connection.setup().roots[screen].root, title) else { return };
        let mut command = Command::new("import");
        command.args(["-display", &self.name, "-window", &window.to_string()]).arg(path);
        assert!(
            command.status().is_ok_and(|status| status.success()),
            "ImageMagick's `import` takes pictures"
        );
    }

    /// What a click on a window's close button sends; false when no window's title ends so.
    pub fn close_window(&self, title: &str) -> bool {
        let (connection, screen) = x11rb::connect(Some(&self.name)).expect("the display answers");
        let root = connection.setup().roots[screen].root;
        let Some(window) = find(&connection, root, title) else { return false };
        let atom = |name: &str| {
            let cookie = connection.intern_atom(false, name.as_bytes()).expect("the display answers");
            cookie.reply().expect("atoms can be made").atom
        };
        let data = [atom("WM_DELETE_WINDOW"), x11rb::CURRENT_TIME, 0, 0, 0];
        let message = ClientMessageEvent::new(32, window, atom("WM_PROTOCOLS"), data);
        connection.send_event(false, window, EventMask::NO_EVENT, message).expect("the message is sent");
        // An answer to a later request says that the server has read the message; a client that goes away sooner may
        // take what it sent along.
        let later = connection.get_input_focus().expect("the display answers");
        later.reply().expect("the display answers");
        true
    }
}

/// The window of an app whose title ends so.
pub(crate) fn find(connection: &impl Connection, window: Window, title: &str) -> Option<Window> {
    let children = connection.query_tree(window).ok()?.reply().ok()?.children;
    let named = |window: &Window| {
        let property = connection.get_property(false, *window, AtomEnum::WM_NAME, AtomEnum::ANY, 0, 1000);
        property.ok().and_then(|cookie| cookie.reply().ok()).is_some_and(|reply| String::from_utf8_lossy(&reply.value).ends_with(title))
            // Helper windows of GTK have the same name; the real one can be closed.
            && connection
                .intern_atom(false, b"WM_PROTOCOLS")
                .ok()
                .and_then(|cookie| cookie.reply().ok())
                .and_then(|atom| connection.get_property(false, *window, atom.atom, AtomEnum::ATOM, 0, 100).ok())
                .and_then(|cookie| cookie.reply().ok())
                .is_some_and(|reply| !reply.value.is_empty())
    };
    children
        .iter()
        .copied()
        .find(named)
        .or_else(|| children.iter().find_map(|child| find(connection, *child, title)))
}

fn pipe() -> (OwnedFd, OwnedFd) {
    let mut ends = [0; 2];
    // SAFETY: pipe2 fills the two descriptors, which nobody else owns.
    unsafe {
        assert_eq!(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC), 0);
        (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]))
    }
}
