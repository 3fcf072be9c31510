//! A file manager as the window sees one: offers a file by drag and drop.
//!
//! Invariant: follows the XDND protocol, version 5, as a source does; nothing is injected into the page.

use std::path::Path;
use std::time::{Duration, Instant};

use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{
    AtomEnum, ClientMessageEvent, ConnectionExt, CreateWindowAux, EventMask, PropMode,
    SELECTION_NOTIFY_EVENT, SelectionNotifyEvent, SelectionRequestEvent, Window, WindowClass,
};
use x11rb::rust_connection::RustConnection;
use x11rb::wrapper::ConnectionExt as _;
use x11rb::{COPY_DEPTH_FROM_PARENT, COPY_FROM_PARENT, CURRENT_TIME};

use crate::display::find;

/// Only a broken app needs so long to answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A drag that is on its way.
pub struct Drag {
    connection: RustConnection,
    source: Window,
    target: Window,
    uri: String,
}

impl Drag {
    /// Takes up a file and holds it over the middle of the window with this title.
    pub fn over(display: &str, title: &str, file: &Path) -> Self {
        let (connection, screen) = x11rb::connect(Some(display)).expect("the display answers");
        let root = connection.setup().roots[screen].root;
        let target = find(&connection, root, title).expect("the window is there");
        let source = connection.generate_id().expect("an id");
        let (depth, visual) = (COPY_DEPTH_FROM_PARENT, COPY_FROM_PARENT);
        connection
            .create_window(
                depth,
                source,
                root,
                0,
                0,
                1,
                1,
                0,
                WindowClass::INPUT_OUTPUT,
                visual,
                &CreateWindowAux::new(),
            )
            .expect("a window");
        let drag = Self { connection, source, target, uri: format!("file://{}\r\n", file.display()) };
        let selection = drag.atom("XdndSelection");
        drag.connection.set_selection_owner(source, selection, CURRENT_TIME).expect("the selection is taken");
        drag.say("XdndEnter", [source, 5 << 24, drag.atom("text/uri-list"), 0, 0]);
        drag.move_until_taken();
        drag
    }

    /// Lets go of it; returns when the window has it.
    pub fn drop(self) {
        self.say("XdndDrop", [self.source, 0, CURRENT_TIME, 0, 0]);
        self.until("XdndFinished", Instant::now() + PATIENCE);
    }

    /// Moves out of the window again.
    pub fn leave(self) {
        self.say("XdndLeave", [self.source, 0, 0, 0, 0]);
        // An answer to a later request says that the server has the message.
        self.connection.get_input_focus().expect("the display answers").reply().expect("the display answers");
    }

    /// A window that has not yet asked what is dragged takes nothing: the pointer moves until it does.
    fn move_until_taken(&self) {
        let end = Instant::now() + PATIENCE;
        let (x, y) = self.middle();
        for step in 0_u32.. {
            let place = ((x + step % 8) << 16) | y;
            self.say("XdndPosition", [self.source, 0, place, CURRENT_TIME, self.atom("XdndActionCopy")]);
            let status = self.until("XdndStatus", end);
            if status[1] & 1 == 1 {
                return;
            }
            assert!(Instant::now() < end, "the window does not take the file");
        }
    }

    fn middle(&self) -> (u32, u32) {
        let geometry = self.connection.get_geometry(self.target).expect("the display answers");
        let size = geometry.reply().expect("the window is there");
        let root = self.connection.setup().roots[0].root;
        let moved =
            self.connection.translate_coordinates(self.target, root, 0, 0).expect("the display answers");
        let corner = moved.reply().expect("the window is there");
        let at = |corner: i16, size: u16| u32::try_from(i32::from(corner) + i32::from(size) / 2).unwrap_or(0);
        (at(corner.dst_x, size.width), at(corner.dst_y, size.height))
    }

    fn say(&self, kind: &str, data: [u32; 5]) {
        let message = ClientMessageEvent::new(32, self.target, self.atom(kind), data);
        self.connection
            .send_event(false, self.target, EventMask::NO_EVENT, message)
            .expect("the message is sent");
        self.connection.flush().expect("the display answers");
    }

    /// Waits for a message of the window; meanwhile says what is dragged to whoever asks.
    fn until(&self, kind: &str, end: Instant) -> [u32; 5] {
        let wanted = self.atom(kind);
        loop {
            match self.connection.poll_for_event().expect("the display answers") {
                Some(Event::ClientMessage(message)) if message.type_ == wanted => {
                    return message.data.as_data32();
                }
                Some(Event::SelectionRequest(request)) => self.give(&request),
                Some(_) => {}
                None => {
                    assert!(Instant::now() < end, "the window does not say {kind}");
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
        }
    }

    fn give(&self, request: &SelectionRequestEvent) {
        let list = self.atom("text/uri-list");
        let known = request.target == list;
        if known {
            self.connection
                .change_property8(
                    PropMode::REPLACE,
                    request.requestor,
                    request.property,
                    list,
                    self.uri.as_bytes(),
                )
                .expect("the display answers");
        }
        let notify = SelectionNotifyEvent {
            response_type: SELECTION_NOTIFY_EVENT,
            sequence: 0,
            time: request.time,
            requestor: request.requestor,
            selection: request.selection,
            target: request.target,
            property: if known { request.property } else { AtomEnum::NONE.into() },
        };
        self.connection
            .send_event(false, request.requestor, EventMask::NO_EVENT, notify)
            .expect("the answer is sent");
        self.connection.flush().expect("the display answers");
    }

    fn atom(&self, name: &str) -> u32 {
        let cookie = self.connection.intern_atom(false, name.as_bytes()).expect("the display answers");
        cookie.reply().expect("atoms can be made").atom
    }
}
