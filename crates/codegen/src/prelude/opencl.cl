// What the shared kernel bodies are written in, for OpenCL C.
#ifdef FP64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
// A product is rounded before it is added to, as on the CPU: x·x − x·x is 0.
#pragma OPENCL FP_CONTRACT OFF
#ifdef ATOM64
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable
#endif
typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef ulong u64;
typedef int i32;
typedef long i64;
typedef float f32;
#ifdef FP64
typedef double f64;
#define AS_F64(bits) as_double(bits)
#define AS_I64(value) as_long(value)
#endif

// A product and a sum are two roundings, as on the CPU.
#pragma OPENCL FP_CONTRACT OFF

#define KERNEL __kernel
#define GLOBAL __global
// What a kernel does not call is not compiled.
#define FUNCTION static inline
#define ITEM get_global_id(0)
#define ITEMS get_global_size(0)
#define HIGH_PRODUCT(a, b) mul_hi((i64)(a), (i64)(b))
#define HIGH_PRODUCT_U64(a, b) mul_hi((u64)(a), (u64)(b))

#define ATOMIC_ADD_32(place, value) atomic_add((volatile GLOBAL u32 *)(place), value)
#define ATOMIC_OR_32(place, value) atomic_or((volatile GLOBAL u32 *)(place), value)
#define ATOMIC_AND_32(place, value) atomic_and((volatile GLOBAL u32 *)(place), value)
#define ATOMIC_LEAST_32(place, value) atomic_min((volatile GLOBAL u32 *)(place), (u32)(value))
#define ATOMIC_MOST_32(place, value) atomic_max((volatile GLOBAL u32 *)(place), (u32)(value))
#define EXCHANGE_IF_32(place, expected, value) atomic_cmpxchg((volatile GLOBAL u32 *)(place), expected, value)
// Bits of one half do not change those of the other.
#define ATOMIC_BITS(name, space, place, value) \
    do { \
        name((volatile space u32 *)(place), (u32)(value)); \
        name((volatile space u32 *)(place) + 1, (u32)((u64)(value) >> 32)); \
    } while (0)
#define ATOMIC_BITS_AND(place, value) ATOMIC_BITS(atomic_and, GLOBAL, place, value)
#define ATOMIC_BITS_OR(place, value) ATOMIC_BITS(atomic_or, GLOBAL, place, value)
#define ATOMIC_BITS_XOR(place, value) ATOMIC_BITS(atomic_xor, GLOBAL, place, value)
#define RAISE(flag) atomic_or((volatile GLOBAL i32 *)(flag), 1)
#ifdef ATOM64
#define ATOMIC_ADD(place, value) atom_add((volatile GLOBAL i64 *)(place), (i64)(value))
#define ATOMIC_LEAST(place, value) atom_min((volatile GLOBAL i64 *)(place), (i64)(value))
#define ATOMIC_MOST(place, value) atom_max((volatile GLOBAL i64 *)(place), (i64)(value))
#define EXCHANGE_IF(place, expected, value) atom_cmpxchg((volatile GLOBAL u64 *)(place), expected, value)
#ifdef FP64
void add_f64(volatile GLOBAL i64 *place, f64 value) {
    // A guess: where it is wrong the exchange says what is there, and nothing is read but by atomic operations.
    i64 before = 0, seen;
    while ((seen = atom_cmpxchg(place, before, as_long(as_double(before) + value))) != before) before = seen;
}
#define ATOMIC_ADD_F64(place, value) add_f64((volatile GLOBAL i64 *)(place), (value))
#endif
#else
// A 64-bit sum as two words, the carry of the lower added to the higher: exact once the kernel has ended.
FUNCTION void add_words(volatile GLOBAL u32 *words, u64 value) {
    const u32 low = (u32)value, high = (u32)(value >> 32) + (atomic_add(words, low) > ~low);
    if (high) atomic_add(words + 1, high);
}
#define ATOMIC_ADD(place, value) add_words((volatile GLOBAL u32 *)(place), (u64)(i64)(value))
#endif

#ifdef CHUNKED
// Work-item i takes rows i·share … and owns table i.
#define FOR_ROWS(row, rows) \
    const u32 share = ((rows) + (u32)ITEMS - 1) / (u32)ITEMS; \
    const u32 begin = min((u32)ITEM * share, (u32)(rows)); \
    const u32 end = min(begin + share, (u32)(rows)); \
    for (u32 row = begin; row < end; row++)
// A loop that vector code, or code of more than eight rows at once, makes no faster, but longer to compile.
#ifdef __clang__
#define SHORT _Pragma("clang loop vectorize(disable) unroll(disable)")
#define BY_EIGHT _Pragma("clang loop vectorize_width(8)")
#else
#define SHORT
#define BY_EIGHT
#endif
// The same a strip at a time: a byte for each row that tells whether it is left, then a list of those that are.
#define STRIP 2048u
#define FOR_STRIPS(strip, rows) \
    const u32 share = ((rows) + (u32)ITEMS - 1) / (u32)ITEMS; \
    const u32 begin = min((u32)ITEM * share, (u32)(rows)); \
    const u32 end = min(begin + share, (u32)(rows)); \
    for (u32 strip = begin; strip < end; strip += STRIP)
#define STRIP_OF_ROWS(strip) \
    const u32 strip_first = strip, strip_rows = min(STRIP, end - strip_first); \
    u32 listed[STRIP + 8], listed_rows = 0; \
    u64 left[STRIP / 8]; \
    left[(strip_rows - 1) / 8] = 0
#define MASK_ROWS(row, test) \
    for (u32 at = 0; at < strip_rows; at++) { const u64 row = (u64)strip_first + at; ((u8 *)left)[at] test; }
// Eight rows at once: `positions` has, for each number of eight bits, where those are that are set.
#define LIST_EIGHT(first, bits) \
    vstore8(convert_uint8(as_uchar8(positions[bits])) + (uint8)(first), 0, listed + listed_rows); \
    listed_rows += popcount(bits)
#define BITS_OF_BYTES(word) ((u32)(((word) * 0x0102040810204080UL) >> 56))
#define LIST_MASKED_ROWS() \
    for (u32 word = 0; word < (strip_rows + 7) / 8; word++) { LIST_EIGHT(strip_first + word * 8, BITS_OF_BYTES(left[word])); }
// The same where most words are expected to be zero.
#define LIST_FEW_MASKED_ROWS() \
    for (u32 word = 0; word < (strip_rows + 7) / 8; word++) { \
        if (!left[word]) continue; \
        LIST_EIGHT(strip_first + word * 8, BITS_OF_BYTES(left[word])); \
    }
// The same of those that pass one more test: in the mask if it has many rows, else one by one.
#define LIST_MASKED_ROWS_THAT(row, test) \
    do { \
        u32 masked = 0; \
        SHORT for (u32 word = 0; word < (strip_rows + 7) / 8; word++) masked += (u32)popcount(left[word]); \
        const int many = masked > strip_rows / 4; \
        if (many) { BY_EIGHT MASK_ROWS(row, &= test); } \
        LIST_FEW_MASKED_ROWS(); \
        if (!many) KEEP_ROWS(row, test); \
    } while (0)
#define LIST_ROWS(row, test) \
    for (u32 first = strip_first; first < strip_first + strip_rows / 8 * 8; first += 8) { \
        u32 bits = 0; \
        for (u32 at = 0; at < 8; at++) { const u32 row = first + at; bits |= (u32)(test) << at; } \
        LIST_EIGHT(first, bits); \
    } \
    SHORT for (u32 row = strip_first + strip_rows / 8 * 8; row < strip_first + strip_rows; row++) { \
        listed[listed_rows] = row; \
        listed_rows += (test); \
    }
#define KEEP_ROWS(row, test) \
    do { \
        u32 kept_rows = 0; \
        for (u32 at = 0; at < listed_rows; at++) { \
            const u32 row = listed[at]; \
            listed[kept_rows] = row; \
            kept_rows += (test); \
        } \
        listed_rows = kept_rows; \
    } while (0)
#define FOR_LISTED(at) for (u32 at = 0; at < listed_rows; at++)
#define TABLE(groups, first, size) ((groups) + (u64)((first) + (u32)ITEM) * (size))
#define ADD(place, value) (*(place) += (value))
#define LEAST(place, value) (*(place) = min(*(place), (i64)(value)))
#define MOST(place, value) (*(place) = max(*(place), (i64)(value)))
#define ADD_F64(place, value) (*(GLOBAL f64 *)(place) += (value))
#define CENTER(place, value) REGISTER_CENTER(*(place), value)
#define BITS_AND(place, value) (*(place) &= (i64)(value))
#define BITS_OR(place, value) (*(place) |= (i64)(value))
#define BITS_XOR(place, value) (*(place) ^= (i64)(value))
#else
// Work-items take rows in turn and share one table.
#define FOR_ROWS(row, rows) for (u32 row = ITEM; row < (rows); row += ITEMS)
#define ADD ATOMIC_ADD
#define LEAST ATOMIC_LEAST
#define MOST ATOMIC_MOST
#define LEAST_32 ATOMIC_LEAST_32
#define MOST_32 ATOMIC_MOST_32
#define ADD_F64 ATOMIC_ADD_F64
#define CENTER ATOMIC_CENTER
#define BITS_AND ATOMIC_BITS_AND
#define BITS_OR ATOMIC_BITS_OR
#define BITS_XOR ATOMIC_BITS_XOR
// A table of a group of work-items' own.
#define LOCAL __local
#define LOCAL_TABLE(name, numbers) __local i64 name[numbers]
#define FOR_OWN(at, count) for (u32 at = get_local_id(0); at < (count); at += get_local_size(0))
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define LOCAL_LEAST_32(place, value) atomic_min((volatile LOCAL u32 *)(place), (u32)(value))
#define LOCAL_MOST_32(place, value) atomic_max((volatile LOCAL u32 *)(place), (u32)(value))
#define LOCAL_BITS_AND(place, value) ATOMIC_BITS(atomic_and, LOCAL, place, value)
#define LOCAL_BITS_OR(place, value) ATOMIC_BITS(atomic_or, LOCAL, place, value)
#define LOCAL_BITS_XOR(place, value) ATOMIC_BITS(atomic_xor, LOCAL, place, value)
#ifdef ATOM64
#define LOCAL_ADD(place, value) atom_add((volatile LOCAL i64 *)(place), (i64)(value))
#define LOCAL_LEAST(place, value) atom_min((volatile LOCAL i64 *)(place), (i64)(value))
#define LOCAL_MOST(place, value) atom_max((volatile LOCAL i64 *)(place), (i64)(value))
#ifdef FP64
void local_add_f64(volatile LOCAL i64 *place, f64 value) {
    i64 before = 0, seen;
    while ((seen = atom_cmpxchg(place, before, as_long(as_double(before) + value))) != before) before = seen;
}
#define LOCAL_ADD_F64(place, value) local_add_f64((volatile LOCAL i64 *)(place), (value))
f64 local_center(volatile LOCAL i64 *place, f64 value) {
    const i64 own = as_long(value + 0.0), seen = atom_cmpxchg(place, as_long(-0.0), own);
    return as_double(seen == as_long(-0.0) ? own : seen);
}
#define LOCAL_CENTER(place, value) local_center((volatile LOCAL i64 *)(place), (value))
#endif
#else
FUNCTION void add_local_words(volatile LOCAL u32 *words, u64 value) {
    const u32 low = (u32)value, high = (u32)(value >> 32) + (atomic_add(words, low) > ~low);
    if (high) atomic_add(words + 1, high);
}
#define LOCAL_ADD(place, value) add_local_words((volatile LOCAL u32 *)(place), (u64)(i64)(value))
#endif
#endif
