// What the shared kernel bodies are written in, for CUDA C.
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int i32;
typedef long long i64;
typedef float f32;
typedef double f64;
#define AS_F64(bits) __longlong_as_double(bits)
#define AS_I64(value) __double_as_longlong(value)

#define KERNEL extern "C" __global__
#define GLOBAL
#define restrict __restrict__
#define FUNCTION static __device__ inline
#define ITEM (blockIdx.x * blockDim.x + threadIdx.x)
#define ITEMS (gridDim.x * blockDim.x)
#define HIGH_PRODUCT(a, b) __mul64hi(a, b)
#define HIGH_PRODUCT_U64(a, b) __umul64hi(a, b)

#define ATOMIC_ADD_32(place, value) atomicAdd((place), (u32)(value))
#define ATOMIC_OR_32(place, value) atomicOr((place), (u32)(value))
#define ATOMIC_AND_32(place, value) atomicAnd((place), (u32)(value))
#define RAISE(flag) atomicOr((flag), 1)
// Bits of one half do not change those of the other.
#define ATOMIC_BITS(name, place, value) \
    do { \
        name((u32 *)(place), (u32)(value)); \
        name((u32 *)(place) + 1, (u32)((u64)(value) >> 32)); \
    } while (0)
#define ATOMIC_BITS_AND(place, value) ATOMIC_BITS(atomicAnd, place, value)
#define ATOMIC_BITS_OR(place, value) ATOMIC_BITS(atomicOr, place, value)
#define ATOMIC_BITS_XOR(place, value) ATOMIC_BITS(atomicXor, place, value)
#define ATOMIC_LEAST_32(place, value) atomicMin((u32 *)(place), (u32)(value))
#define ATOMIC_MOST_32(place, value) atomicMax((u32 *)(place), (u32)(value))
#define EXCHANGE_IF_32(place, expected, value) atomicCAS((u32 *)(place), (u32)(expected), (u32)(value))
#ifdef ATOM64
#define ATOMIC_ADD(place, value) atomicAdd((u64 *)(place), (u64)(i64)(value))
#else
// A 64-bit sum as two words, the carry of the lower added to the higher: exact once the kernel has ended.
FUNCTION void add_words(u32 *words, u64 value) {
    const u32 low = (u32)value, high = (u32)(value >> 32) + (atomicAdd(words, low) > ~low);
    if (high) atomicAdd(words + 1, high);
}
#define ATOMIC_ADD(place, value) add_words((u32 *)(place), (u64)(i64)(value))
#endif
#define ATOMIC_LEAST(place, value) atomicMin((place), (i64)(value))
#define ATOMIC_MOST(place, value) atomicMax((place), (i64)(value))
#define ATOMIC_ADD_F64(place, value) atomicAdd((f64 *)(place), (value))
#define EXCHANGE_IF(place, expected, value) atomicCAS((place), expected, value)

// Threads take rows in turn and share one table.
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
// A table of a block's own.
#define LOCAL
#define LOCAL_TABLE(name, numbers) __shared__ i64 name[numbers]
#define FOR_OWN(at, count) for (u32 at = threadIdx.x; at < (count); at += blockDim.x)
#define BARRIER() __syncthreads()
#define LOCAL_ADD ATOMIC_ADD
#define LOCAL_LEAST ATOMIC_LEAST
#define LOCAL_MOST ATOMIC_MOST
#define LOCAL_LEAST_32 ATOMIC_LEAST_32
#define LOCAL_MOST_32 ATOMIC_MOST_32
#define LOCAL_ADD_F64 ATOMIC_ADD_F64
#define LOCAL_CENTER ATOMIC_CENTER
#define LOCAL_BITS_AND ATOMIC_BITS_AND
#define LOCAL_BITS_OR ATOMIC_BITS_OR
#define LOCAL_BITS_XOR ATOMIC_BITS_XOR
