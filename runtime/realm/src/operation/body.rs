//! Bodies without their types: stored in a slot, or boxed when too large, and called once.

use std::sync::Arc;

use super::operations::{BodyTable, Call, Finish};
use crate::events::slot::{BODY_BYTES, BodyBytes};
use crate::fault::Fault;

/// Something that is called once, when its operation's preconditions have triggered.
pub(crate) trait OperationBody: Send + Sized + 'static {
    /// Does the work, or, given a fault, whatever there is to be done instead.
    fn call(self, call: Call<'_>) -> Result<(), Arc<Fault>>;

    /// The realm goes down before the body was called.
    fn abandon(self, fault: &Arc<Fault>) {
        let _ = fault;
    }
}

/// Puts `body` into `storage` and gives its table.
///
/// # Safety
/// `storage` is valid for writes and holds no body. The table may only be used with this storage, and only until it is
/// empty.
pub(crate) unsafe fn store<B: OperationBody>(storage: *mut BodyBytes, body: B) -> &'static BodyTable {
    if const { fits::<B>() } {
        // SAFETY: the storage is large and aligned enough, and the caller vouches for it.
        unsafe { storage.cast::<B>().write(body) };
        const { &BodyTable { call: call_inline::<B>, abandon: abandon_inline::<B> } }
    } else {
        // SAFETY: a box is a pointer, which fits.
        unsafe { storage.cast::<Box<B>>().write(Box::new(body)) };
        const { &BodyTable { call: call_boxed::<B>, abandon: abandon_boxed::<B> } }
    }
}

const fn fits<B>() -> bool {
    size_of::<B>() <= BODY_BYTES && align_of::<B>() <= align_of::<BodyBytes>()
}

unsafe fn call_inline<B: OperationBody>(storage: *mut BodyBytes, call: Call<'_>) -> Finish {
    // SAFETY: `store` put a `B` there, which is taken out once.
    Finish::Done(unsafe { storage.cast::<B>().read() }.call(call))
}

unsafe fn abandon_inline<B: OperationBody>(storage: *mut BodyBytes, fault: &Arc<Fault>) {
    // SAFETY: as in `call_inline`.
    unsafe { storage.cast::<B>().read() }.abandon(fault);
}

unsafe fn call_boxed<B: OperationBody>(storage: *mut BodyBytes, call: Call<'_>) -> Finish {
    // SAFETY: `store` put a `Box<B>` there, which is taken out once.
    let body = unsafe { storage.cast::<Box<B>>().read() };
    Finish::Done((*body).call(call))
}

unsafe fn abandon_boxed<B: OperationBody>(storage: *mut BodyBytes, fault: &Arc<Fault>) {
    // SAFETY: as in `call_boxed`.
    let body = unsafe { storage.cast::<Box<B>>().read() };
    (*body).abandon(fault);
}
