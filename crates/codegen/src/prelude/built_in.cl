// The functions of OpenCL C that kernels use. PoCL reads a header with 18,000 of them for each program, in 110 ms; told
// that it has been read (-D_OPENCL_H_ -DDECLARED) it leaves it alone, and these are declared instead.
#ifdef DECLARED
#define BUILT_IN __attribute__((overloadable))
#define VALUE __attribute__((overloadable, const))
size_t VALUE get_global_id(uint);
size_t VALUE get_global_size(uint);
size_t VALUE get_local_id(uint);
size_t VALUE get_local_size(uint);
void __attribute__((overloadable, convergent)) barrier(cl_mem_fence_flags);
#define OF_INTEGERS(type) \
    type VALUE min(type, type); \
    type VALUE max(type, type); \
    type VALUE mul_hi(type, type); \
    type VALUE popcount(type);
OF_INTEGERS(int)
OF_INTEGERS(uint)
OF_INTEGERS(long)
OF_INTEGERS(ulong)
uint8 VALUE convert_uint8(uchar8);
void BUILT_IN vstore8(uint8, size_t, uint *);
#define OF_FLOATS(type) \
    type VALUE fabs(type); \
    type VALUE floor(type); \
    type VALUE ceil(type); \
    type VALUE trunc(type); \
    type VALUE round(type); \
    type VALUE sqrt(type); \
    type VALUE fmod(type, type);
OF_FLOATS(float)
#ifdef FP64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
OF_FLOATS(double)
#endif
#define OF_WORDS(space, type) \
    type BUILT_IN atomic_add(volatile space type *, type); \
    type BUILT_IN atomic_or(volatile space type *, type); \
    type BUILT_IN atomic_and(volatile space type *, type); \
    type BUILT_IN atomic_xor(volatile space type *, type); \
    type BUILT_IN atomic_min(volatile space type *, type); \
    type BUILT_IN atomic_max(volatile space type *, type); \
    type BUILT_IN atomic_cmpxchg(volatile space type *, type, type);
OF_WORDS(__global, int)
OF_WORDS(__global, uint)
OF_WORDS(__local, int)
OF_WORDS(__local, uint)
#ifdef ATOM64
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable
#define OF_LONG_WORDS(space, type) \
    type BUILT_IN atom_add(volatile space type *, type); \
    type BUILT_IN atom_min(volatile space type *, type); \
    type BUILT_IN atom_max(volatile space type *, type); \
    type BUILT_IN atom_cmpxchg(volatile space type *, type, type);
OF_LONG_WORDS(__global, long)
OF_LONG_WORDS(__global, ulong)
OF_LONG_WORDS(__local, long)
OF_LONG_WORDS(__local, ulong)
#endif
#endif
