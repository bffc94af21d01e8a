//! A situation: links, what happens to them, and what must hold all the same.
