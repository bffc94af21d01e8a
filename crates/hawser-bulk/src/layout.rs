//! Files, blocks and chunks: where each byte of an offer is.
//!
//! 1. [`FileInfo`]: what is said of a file; its name is one that cannot lead elsewhere ([`FileName`]).
//! 2. [`Layout`]: blocks of all files, numbered through.
//! 3. [`ChunkId`]: a part of a block that one datagram carries.

use std::fmt;
use std::ops::Range;

/// Bytes of a block but a file's last: large enough for disks, small enough that what a broken transfer loses is
/// little.
pub const BLOCK_LEN: usize = 1 << 20;
/// Files of one offer at most.
pub const MOST_FILES: usize = 1024;
/// Blocks of one offer at most: 256 TiB.
pub const MOST_BLOCKS: u64 = 1 << 28;
/// Bytes of a name at most: a file system's 255 (NAME_MAX of Linux), less the suffix of a part.
pub const MOST_NAME: usize = 250;
/// The least and the largest chunk, in bytes: what an IPv6 packet of 1280 bytes leaves in any case; what a block's
/// 2-byte index takes.
pub const CHUNKS: Range<usize> = 512..60_001;
/// What names of unfinished files end in.
pub const PART: &str = ".part";
/// What their maps end in.
pub const MAP: &str = ".part.map";

/// A block of an offer, by its number. A plain number.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct BlockId(pub u32);

/// A chunk: its block, and which of it. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ChunkId {
    /// The block.
    pub block: BlockId,
    /// From 0.
    pub index: u16,
}

/// A name that is one component of a path, and shows as it is. No default; plain data.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FileName(String);

/// Why a name is none. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NameError {
    /// Empty, or too long.
    #[error("take name: it has {0} bytes, but 1 to {MOST_NAME} can be sent")]
    Length(usize),
    /// It would lead elsewhere, or is no text.
    #[error("take name: it is no single component of a path, in UTF-8 and without control characters")]
    Component,
    /// It would be taken for an unfinished file.
    #[error("take name: it ends in {PART} or {MAP}, as unfinished files do")]
    Suffix,
    /// The receiver has one folder: another file is to have its name there.
    #[error("take name: a file before it in the offer has the same name")]
    Twice,
}

/// A file of an offer; of one whose name is not taken why, and its size.
pub type OfferedFile = Result<FileInfo, (NameError, u64)>;

/// What is said of a file. No default; plain data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileInfo {
    /// What it is called.
    pub name: FileName,
    /// Bytes.
    pub size: u64,
    /// When it was last changed: nanoseconds since 1970. With name and size it tells one version from another.
    pub modified: i64,
}

/// Why files are no offer. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LayoutError {
    /// None, or too many.
    #[error("lay out: {0} files, but 1 to {MOST_FILES} can be sent at once")]
    Files(usize),
    /// Together they are too large.
    #[error("lay out: the files are larger than 256 TiB together")]
    Size,
    /// A path that carries too little, or a chunk that no path carries.
    #[error("lay out: chunks of {0} bytes, but they have {min} to {max}", min = CHUNKS.start, max = CHUNKS.end - 1)]
    Chunk(usize),
}

/// A file's blocks. Plain data.
#[derive(Copy, Clone, Debug)]
struct Span {
    first: u32,
    blocks: u32,
    size: u64,
}

/// Where each byte of an offer is. No default; plain data.
#[derive(Clone, Debug)]
pub struct Layout {
    spans: Vec<Span>,
    chunk: usize,
    blocks: u32,
}

impl FileName {
    /// Takes a name.
    ///
    /// # Errors
    /// [`NameError`].
    pub fn new(name: &[u8]) -> Result<FileName, NameError> {
        if name.is_empty() || name.len() > MOST_NAME {
            return Err(NameError::Length(name.len()));
        }
        let text = std::str::from_utf8(name).map_err(|_| NameError::Component)?;
        if text == "." || text == ".." || text.contains('/') || text.chars().any(char::is_control) {
            return Err(NameError::Component);
        }
        if text.ends_with(PART) || text.ends_with(MAP) {
            return Err(NameError::Suffix);
        }
        Ok(FileName(text.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Layout {
    /// Files of these sizes in bytes, in chunks of `chunk` bytes.
    ///
    /// # Errors
    /// [`LayoutError`].
    pub fn new(sizes: impl IntoIterator<Item = u64>, chunk: usize) -> Result<Layout, LayoutError> {
        if !CHUNKS.contains(&chunk) {
            return Err(LayoutError::Chunk(chunk));
        }
        let (mut spans, mut next) = (Vec::new(), 0_u64);
        for size in sizes {
            let blocks = size.div_ceil(BLOCK_LEN as u64);
            let end = next.saturating_add(blocks);
            if end > MOST_BLOCKS {
                return Err(LayoutError::Size);
            }
            spans.push(Span { first: next as u32, blocks: blocks as u32, size });
            next = end;
        }
        if spans.is_empty() || spans.len() > MOST_FILES {
            return Err(LayoutError::Files(spans.len()));
        }
        Ok(Layout { spans, chunk, blocks: next as u32 })
    }

    /// Blocks of all files.
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Files.
    pub fn files(&self) -> usize {
        self.spans.len()
    }

    /// Bytes of a whole chunk.
    pub fn chunk(&self) -> usize {
        self.chunk
    }

    /// Bytes of a file.
    pub fn size(&self, file: usize) -> u64 {
        self.spans.get(file).map_or(0, |span| span.size)
    }

    /// A file's blocks.
    pub fn blocks_of(&self, file: usize) -> Range<u32> {
        self.spans.get(file).map_or(0..0, |span| span.first..span.first + span.blocks)
    }

    /// Which file a block is of, and where in it it begins, in bytes.
    pub fn place(&self, block: BlockId) -> Option<(usize, u64)> {
        if block.0 >= self.blocks {
            return None;
        }
        // Empty files begin where the next one does: the last that begins here or before has the block.
        let file = self.spans.partition_point(|span| span.first <= block.0).checked_sub(1)?;
        let span = self.spans.get(file)?;
        Some((file, u64::from(block.0 - span.first) * BLOCK_LEN as u64))
    }

    /// Bytes of a block; 0 if there is none.
    pub fn block_len(&self, block: BlockId) -> usize {
        self.place(block).map_or(0, |(file, at)| (self.size(file) - at).min(BLOCK_LEN as u64) as usize)
    }

    /// Chunks of a block.
    pub fn chunks(&self, block: BlockId) -> u16 {
        self.block_len(block).div_ceil(self.chunk) as u16
    }

    /// Where in its block a chunk is; none if there is no such chunk.
    pub fn range(&self, chunk: ChunkId) -> Option<Range<usize>> {
        let (len, start) = (self.block_len(chunk.block), usize::from(chunk.index) * self.chunk);
        (start < len).then(|| start..len.min(start + self.chunk))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_is_one_component_that_shows_as_it_is() {
        for name in ["a", "file.tar.gz", "..a", ".hidden", "häuser 1", "part"] {
            assert_eq!(FileName::new(name.as_bytes()).map(|name| name.to_string()), Ok(name.to_owned()));
        }
        let long = "x".repeat(MOST_NAME + 1);
        let hostile: [(&[u8], NameError); 11] = [
            (b"", NameError::Length(0)),
            (long.as_bytes(), NameError::Length(MOST_NAME + 1)),
            (b".", NameError::Component),
            (b"..", NameError::Component),
            (b"../etc/passwd", NameError::Component),
            (b"/etc/passwd", NameError::Component),
            (b"a\0b", NameError::Component),
            (b"\x1b[2J", NameError::Component),
            (b"\xff\xfe", NameError::Component),
            (b"a.part", NameError::Suffix),
            (b"a.part.map", NameError::Suffix),
        ];
        for (name, fault) in hostile {
            assert_eq!(FileName::new(name), Err(fault), "{name:?}");
        }
    }

    #[test]
    fn blocks_are_numbered_through_and_empty_files_have_none() {
        let layout = Layout::new([0, 1, 0, BLOCK_LEN as u64 + 5, 0], 1000).expect("an offer");
        assert_eq!(layout.blocks(), 3);
        let spans: Vec<_> = (0..5).map(|file| layout.blocks_of(file)).collect();
        assert_eq!(spans, [0..0, 0..1, 1..1, 1..3, 3..3]);
        let places: Vec<_> = (0..4).map(|block| layout.place(BlockId(block))).collect();
        assert_eq!(places, [Some((1, 0)), Some((3, 0)), Some((3, BLOCK_LEN as u64)), None]);
        assert_eq!([0, 1, 2, 3].map(|block| layout.block_len(BlockId(block))), [1, BLOCK_LEN, 5, 0]);
        assert_eq!(layout.chunks(BlockId(1)), 1049);
    }

    #[test]
    fn what_is_no_offer_is_refused() {
        assert_eq!(Layout::new([], 1000).map(|_| ()), Err(LayoutError::Files(0)));
        assert_eq!(Layout::new([0; MOST_FILES + 1], 1000).map(|_| ()), Err(LayoutError::Files(MOST_FILES + 1)));
        assert_eq!(Layout::new([u64::MAX], 1000).map(|_| ()), Err(LayoutError::Size));
        assert_eq!(Layout::new([1 << 48, 1], 1000).map(|_| ()), Err(LayoutError::Size));
        assert_eq!(Layout::new([1], 511).map(|_| ()), Err(LayoutError::Chunk(511)));
        assert_eq!(Layout::new([1], 60_001).map(|_| ()), Err(LayoutError::Chunk(60_001)));
    }

    proptest! {
        #[test]
        fn chunks_are_every_byte_of_every_file_once(
            sizes in proptest::collection::vec(0_u64..3_000_000, 1..6),
            chunk in CHUNKS,
        ) {
            let layout = Layout::new(sizes.iter().copied(), chunk).expect("an offer");
            let mut seen = vec![0_u64; sizes.len()];
            for block in (0..layout.blocks()).map(BlockId) {
                let (file, at) = layout.place(block).expect("a block");
                prop_assert_eq!(at, seen[file]);
                let mut end = 0;
                for index in 0..layout.chunks(block) {
                    let range = layout.range(ChunkId { block, index }).expect("a chunk");
                    prop_assert_eq!(range.start, end);
                    end = range.end;
                }
                prop_assert_eq!(end, layout.block_len(block));
                let beyond = ChunkId { block, index: layout.chunks(block) };
                prop_assert!(layout.range(beyond).is_none());
                seen[file] += end as u64;
            }
            prop_assert_eq!(seen, sizes);
        }
    }
}
