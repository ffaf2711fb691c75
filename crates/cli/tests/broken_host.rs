//! The real binary on a host that fails it: stopped, without space, without descriptors, without memory, with damaged
//! pages, a clock that jumps, a disk that is slow or will not be written. Behind each of them, what was answered is
//! there, what ended ended once, and the message says what happened.

mod common;

mod broken_host {
    mod clock;
    mod descriptors;
    mod fault;
    mod full_disk;
    mod memory;
    mod pages;
    mod read_only;
    mod slow_disk;
    mod stopped;
}
