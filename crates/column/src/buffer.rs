//! Aligned, immutable memory for column values.
//!
//! Every buffer starts on a 4096-byte boundary and its allocation is a multiple of 4096 bytes, so a device can map it
//! without a copy and SIMD loads may run up to the end of the last page. Buffers are shared by reference count.
