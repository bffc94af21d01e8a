//! The terminal while it is taken over.

use std::io;

use ratatui::{DefaultTerminal, Frame};

/// The alternate screen, in raw mode. Given back when it drops, and by a panic of any thread before its message is
/// shown.
pub struct Screen(DefaultTerminal);

impl Screen {
    /// Takes the terminal over.
    pub fn take() -> io::Result<Self> {
        match ratatui::try_init() {
            Ok(terminal) => Ok(Self(terminal)),
            Err(error) => {
                // Whatever of it was done already.
                let _ = ratatui::try_restore();
                Err(error)
            }
        }
    }

    /// Draws one picture; what has not changed is not sent.
    pub fn draw(&mut self, picture: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.0.draw(picture).map(drop)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing.
        let _ = ratatui::try_restore();
    }
}
