//! How much a file may ask for.

/// How much a file may ask for. Everything above is refused before the XML parser sees the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the file.
    pub bytes: usize,
    /// Elements inside each other, diagram and extensions included. Values above 4,096 count as 4,096,
    /// because extensions are nested values whose destructors recurse.
    pub depth: u32,
    /// Elements, diagram and extensions included; comments and processing instructions are counted
    /// against the same number once more.
    pub elements: usize,
    /// Attributes of all elements, namespace declarations included.
    pub attributes: usize,
    /// Attributes of one element, namespace declarations included.
    pub attributes_per_element: usize,
    /// Namespace prefixes that are in scope at one place.
    pub namespaces: usize,
    /// Bytes of one attribute value or of one run of text.
    pub value_bytes: usize,
}

/// The deepest nesting that any limit can allow.
const DEEPEST: u32 = 4_096;

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 16 * 1024 * 1024,
            // Models of people stay below 50; a thousand sub-processes inside each other fit.
            depth: 1_100,
            // A large model with its diagram has some 20,000.
            elements: 200_000,
            attributes: 600_000,
            // The XML parser compares every attribute of an element with every other.
            attributes_per_element: 256,
            // The XML parser looks a prefix up from the first to the last.
            namespaces: 128,
            value_bytes: 4 * 1024 * 1024,
        }
    }
}

impl Limits {
    pub(crate) fn effective_depth(&self) -> usize {
        self.depth.min(DEEPEST) as usize
    }

    /// Tree nodes that a text within the limits can make: every tag and comment, and text between them.
    pub(crate) fn nodes(&self) -> usize {
        self.elements.saturating_mul(5).saturating_add(16)
    }
}
