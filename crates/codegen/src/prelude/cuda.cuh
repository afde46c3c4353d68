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
#define FUNCTION static __device__ inline
#define ITEM (blockIdx.x * blockDim.x + threadIdx.x)
#define ITEMS (gridDim.x * blockDim.x)
#define HIGH_PRODUCT(a, b) __mul64hi(a, b)
#define HIGH_PRODUCT_U64(a, b) __umul64hi(a, b)

// Threads take rows in turn and share one table.
#define FOR_ROWS(row, rows) for (u32 row = ITEM; row < (rows); row += ITEMS)
#define TABLE(groups, size) (groups)
#define ADD(place, value) atomicAdd((u64 *)(place), (u64)(i64)(value))
#define LEAST(place, value) atomicMin((place), (i64)(value))
#define MOST(place, value) atomicMax((place), (i64)(value))
#define ADD_F64(place, value) atomicAdd((f64 *)(place), (value))
