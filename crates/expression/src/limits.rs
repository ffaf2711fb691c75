//! What one evaluation may use, and what one text may hold.

/// The limits of one evaluation.
///
/// They are deterministic: the same expression with the same variables ends the same way on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Evaluation steps: about one for each node visited and each list item touched.
    pub steps: u64,
    /// Nesting of evaluations, function calls included.
    pub depth: u32,
    /// Bytes of any one string or list that is built. All that one evaluation builds may reach sixteen times this.
    pub size: usize,
}

impl Default for Limits {
    /// A million steps (some tens of milliseconds), a depth that fits half of a thread's usual stack of 2 MiB, 4 MiB a value.
    fn default() -> Self {
        Limits {
            steps: 1_000_000,
            depth: 300,
            size: 4 << 20,
        }
    }
}

/// How many times [`Limits::size`] one evaluation may build altogether.
pub(crate) const TOTAL_SIZE_FACTOR: usize = 16;

/// Longest text that is parsed, in bytes.
pub(crate) const MAX_TEXT: usize = 64 * 1024;

/// Deepest nesting of a text, and of the tree made from it.
pub(crate) const MAX_NESTING: u32 = 200;

/// Deepest nesting of lists, contexts and closures as values: they are compared, printed and dropped by recursion.
pub(crate) const MAX_VALUE_DEPTH: u32 = 128;

/// Largest compiled regular expression, in bytes.
pub(crate) const MAX_REGEX: usize = 1 << 20;
