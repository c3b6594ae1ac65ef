//! Bytes that MPI is sending or receiving.

use std::mem::{self, ManuallyDrop};

use mpi::Tag;
use mpi::point_to_point::Message;
use mpi::request::{Request, StaticScope};
use mpi::topology::Process;
use mpi::traits::Destination;

/// A buffer that MPI uses, until a [test](Self::test) finds that it is done with it.
///
/// If it is dropped before, the buffer stays where it is for ever: it is not known when MPI lets go of it.
pub(super) struct Flight {
    /// Taken when it is completed.
    request: Option<Request<'static, [u8], StaticScope>>,
    /// The address of the buffer: with length and capacity, the parts of a vector.
    pointer: *mut u8,
    length: usize,
    capacity: usize,
}

impl Flight {
    /// Begins to send bytes.
    pub(super) fn send(to: &Process<'_>, tag: Tag, bytes: Vec<u8>) -> Self {
        let (pointer, length, capacity) = into_parts(bytes);
        // SAFETY: the buffer stays until the request is completed, and nothing changes it before, since only `test`
        // makes a vector of it again.
        let buffer: &'static [u8] = unsafe { std::slice::from_raw_parts(pointer, length) };
        let request = to.immediate_send_with_tag(StaticScope, buffer, tag);
        Self { request: Some(request), pointer, length, capacity }
    }

    /// Begins to receive a message of so many bytes.
    pub(super) fn receive(message: Message, length: usize) -> Self {
        let (pointer, length, capacity) = into_parts(vec![0; length]);
        // SAFETY: the buffer stays until the request is completed, and nothing else uses it before, since only `test`
        // makes a vector of it again.
        let buffer: &'static mut [u8] = unsafe { std::slice::from_raw_parts_mut(pointer, length) };
        let request = message.immediate_matched_receive_into(StaticScope, buffer);
        Self { request: Some(request), pointer, length, capacity }
    }

    /// The bytes if all are sent or received, otherwise itself.
    pub(super) fn test(mut self) -> Result<Vec<u8>, Self> {
        if let Some(request) = self.request.take()
            && let Err(request) = request.test()
        {
            self.request = Some(request);
            return Err(self);
        }
        // SAFETY: these are the parts of the vector that it was made of. MPI is done with them, and `self`, which is
        // not used any more, frees nothing.
        Ok(unsafe { Vec::from_raw_parts(self.pointer, self.length, self.capacity) })
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        // A request that is dropped panics.
        mem::forget(self.request.take());
    }
}

fn into_parts(bytes: Vec<u8>) -> (*mut u8, usize, usize) {
    let mut bytes = ManuallyDrop::new(bytes);
    (bytes.as_mut_ptr(), bytes.len(), bytes.capacity())
}
