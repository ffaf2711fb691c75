//! What a worker process and its owner say to each other: frames of JSON with their length before them.
//!
//! The owner sends one [`Setup`], the worker answers with a [`Greeting`]. After that every [`Request`] has one
//! [`Reply`] with its number. Either side ends the talk by closing its pipe.

use std::borrow::Cow;
use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Bytes of a frame's length, little endian.
pub(crate) const LENGTH_BYTES: usize = 4;
/// Room in a reply for all that is not the result: numbers, names, and a message with every character escaped.
pub(crate) const REPLY_EXTRA_BYTES: u32 = 64 << 10;
/// Longest message of a script, in bytes.
pub(crate) const MESSAGE_BYTES: usize = 4 << 10;
/// A setup is small; a first frame that is longer does not come from an owner.
pub(crate) const SETUP_BYTES: u32 = 4 << 10;

/// The limits that hold in a worker for all of its life.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(crate) time_ms: u64,
    pub(crate) memory_bytes: u64,
    pub(crate) output_bytes: u32,
    pub(crate) input_bytes: u32,
}

/// A worker's first word.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Greeting {
    Ready,
    /// It could not take its limits upon itself, and will run nothing.
    Refused(String),
}

/// One script to run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Request<'a> {
    pub(crate) number: u64,
    pub(crate) script: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) variables: &'a RawValue,
}

/// What became of it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Reply {
    pub(crate) number: u64,
    pub(crate) outcome: Outcome,
}

/// What became of a script.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Outcome {
    /// It ended, perhaps with a value.
    Value(Option<Box<RawValue>>),
    /// It threw a `BpmnError`.
    Error {
        code: String,
        message: String,
        variables: Option<Box<RawValue>>,
    },
    /// It failed, and would fail again.
    Failed(String),
    /// It ran out of time, and the interpreter noticed.
    TimedOut,
}

/// Reads one frame; none at the end of the input.
///
/// # Errors
/// The frame is longer than `most` bytes, is cut short, or cannot be read.
pub(crate) fn read(from: &mut impl Read, most: u32) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; LENGTH_BYTES];
    match from.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let length = u32::from_le_bytes(length);
    if length > most {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the frame is too long",
        ));
    }
    let mut frame = vec![0; length as usize];
    from.read_exact(&mut frame)?;
    Ok(Some(frame))
}

/// Writes one frame.
///
/// # Errors
/// It cannot be written.
pub(crate) fn write(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    to.write_all(&frame(message)?)?;
    to.flush()
}

/// A message's length and text.
///
/// # Errors
/// The message cannot be written as JSON, or is longer than a length can say.
pub(crate) fn frame(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; LENGTH_BYTES];
    serde_json::to_writer(&mut frame, message)?;
    let length = u32::try_from(frame.len() - LENGTH_BYTES).map_err(io::Error::other)?;
    frame[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    Ok(frame)
}
