//! Finds in the JSON of a call, byte by byte, what is to be held back.
//!
//! Invariant: pure; never fails, whatever the bytes are.

/// Finds the name of the tool and the strings of the arguments in the JSON of a call.
#[derive(Default)]
pub(super) struct Scanner {
    depth: usize,
    in_string: bool,
    escaped: bool,
    value: bool,
    pub(super) key: String,
}

/// What a byte of a call is.
pub(super) enum Turn {
    ValueBegins,
    ValueEnds,
    /// A byte of a value.
    Inside,
    Other,
}

impl Scanner {
    /// Takes the next byte.
    pub(super) fn take(&mut self, byte: u8) -> Turn {
        if self.in_string {
            return self.take_in_string(byte);
        }
        match byte {
            b'{' | b'[' => {
                self.depth += 1;
                self.value = byte == b'[' && self.value;
            }
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            b':' => self.value = true,
            b',' => self.value = false,
            b'"' => {
                self.in_string = true;
                if self.is_held() {
                    return Turn::ValueBegins;
                }
                self.key.clear();
            }
            _ => {}
        }
        Turn::Other
    }

    fn take_in_string(&mut self, byte: u8) -> Turn {
        let held = self.is_held();
        if self.escaped {
            self.escaped = false;
        } else if byte == b'\\' {
            self.escaped = true;
        } else if byte == b'"' {
            self.in_string = false;
            return if held { Turn::ValueEnds } else { Turn::Other };
        }
        if held {
            return Turn::Inside;
        }
        self.key.push(char::from(byte));
        Turn::Other
    }

    fn is_held(&self) -> bool {
        self.value && (self.depth >= 2 || self.names_tool())
    }

    /// Whether the value at hand is the tool's name.
    pub(super) fn names_tool(&self) -> bool {
        self.depth == 1 && self.key == "name"
    }
}
