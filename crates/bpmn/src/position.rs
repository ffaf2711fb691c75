//! Byte offsets to lines and columns.

use tidegate_model::document::Position;

/// Bytes between two counted places. A look-up counts at most this many bytes, so that a file that is one
/// long line costs no more than any other.
const BLOCK: usize = 256;

/// The lines of a text, indexed once.
pub struct Lines<'a> {
    text: &'a [u8],
    /// The offset at which each line begins.
    starts: Vec<u32>,
    /// Characters before each block; empty if the text is ASCII.
    characters: Vec<u32>,
}

impl<'a> Lines<'a> {
    pub fn new(text: &'a str) -> Self {
        let bytes = text.as_bytes();
        let mut starts = vec![0];
        starts.extend(
            bytes
                .iter()
                .enumerate()
                .filter(|(_, byte)| **byte == b'\n')
                .map(|(at, _)| at as u32 + 1),
        );
        let mut characters = Vec::new();
        if !text.is_ascii() {
            let mut before = 0;
            for block in bytes.chunks(BLOCK) {
                characters.push(before);
                before += count(block);
            }
            characters.push(before);
        }
        Self {
            text: bytes,
            starts,
            characters,
        }
    }

    /// The place of a byte offset.
    pub fn position(&self, offset: usize) -> Position {
        let offset = offset.min(self.text.len());
        let line = self.starts.partition_point(|start| *start as usize <= offset);
        let start = self.starts[line - 1] as usize;
        Position {
            line: line as u32,
            column: self.characters_before(offset) - self.characters_before(start) + 1,
        }
    }

    /// The byte offset of a place; the end of the text for one beyond it.
    pub fn offset(&self, position: Position) -> usize {
        let line = (position.line.max(1) as usize - 1).min(self.starts.len() - 1);
        let start = self.starts[line] as usize;
        let mut column = 1;
        for (at, byte) in self.text[start..].iter().enumerate() {
            if !is_continuation(*byte) {
                if column == position.column {
                    return start + at;
                }
                column += 1;
            }
        }
        self.text.len()
    }

    /// The place behind the last character that is no white space.
    pub fn end(&self) -> Position {
        self.position(self.text.trim_ascii_end().len())
    }

    fn characters_before(&self, offset: usize) -> u32 {
        if self.characters.is_empty() {
            return offset as u32;
        }
        let block = offset / BLOCK;
        self.characters[block] + count(&self.text[block * BLOCK..offset])
    }
}

fn count(bytes: &[u8]) -> u32 {
    bytes.iter().filter(|byte| !is_continuation(**byte)).count() as u32
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_characters_not_bytes() {
        let text = format!("a\n{}x\nb", "é".repeat(1000));
        let lines = Lines::new(&text);
        for (offset, line, column) in [
            (0, 1, 1),
            (1, 1, 2),
            (2, 2, 1),
            (2002, 2, 1001),
            (2004, 3, 1),
            (9999, 3, 2),
        ] {
            let position = Position { line, column };
            assert_eq!(lines.position(offset), position, "{offset}");
            assert_eq!(lines.offset(position), offset.min(text.len()), "{offset}");
        }
    }
}
