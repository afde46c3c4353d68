// CUDA C++ on the CPU, for tests: what kernel text uses of it, and a launch that runs blocks and threads in turn.
//
// The text comes behind this file, preprocessed, so that nothing defined here can change what its own macros mean. Only
// overloads that CUDA has are defined: what does not compile there should not compile here.
#include <ucontext.h>

#define __global__
#define __device__
#define __host__
#define __constant__ static const
#define __forceinline__ inline
#define __launch_bounds__(...)
// One array for the threads of a block, which all run on one thread of the process.
#define __shared__ static thread_local

struct uint3 {
    unsigned int x, y, z;
};
static thread_local uint3 threadIdx, blockIdx, blockDim, gridDim;

typedef unsigned int shim_u32;
typedef unsigned long long shim_u64;

#define SHIM_ATOMIC(type, name, builtin) \
    static inline type name(type *place, type value) { return builtin(place, value, __ATOMIC_RELAXED); }
// Exchanges until no other thread came between.
#define SHIM_EXCHANGED(type, name, next) \
    static inline type name(type *place, type value) { \
        type before, after; \
        __atomic_load(place, &before, __ATOMIC_RELAXED); \
        do after = (next); \
        while (!__atomic_compare_exchange(place, &before, &after, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)); \
        return before; \
    }
#define SHIM_INTEGER(type) \
    SHIM_ATOMIC(type, atomicExch, __atomic_exchange_n) \
    SHIM_ATOMIC(type, atomicAnd, __atomic_fetch_and) \
    SHIM_ATOMIC(type, atomicOr, __atomic_fetch_or) \
    SHIM_ATOMIC(type, atomicXor, __atomic_fetch_xor) \
    SHIM_ATOMIC(type, atomicAdd, __atomic_fetch_add) \
    static inline type atomicCAS(type *place, type expected, type value) { \
        __atomic_compare_exchange_n(place, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED); \
        return expected; \
    }
#define SHIM_ORDERED(type) \
    SHIM_EXCHANGED(type, atomicMin, value < before ? value : before) \
    SHIM_EXCHANGED(type, atomicMax, value > before ? value : before) \
    static inline type min(type a, type b) { return b < a ? b : a; } \
    static inline type max(type a, type b) { return a < b ? b : a; }
SHIM_INTEGER(int)
SHIM_INTEGER(shim_u32)
SHIM_INTEGER(shim_u64)
SHIM_ORDERED(int)
SHIM_ORDERED(shim_u32)
SHIM_ORDERED(long long)
SHIM_ORDERED(shim_u64)
SHIM_EXCHANGED(float, atomicAdd, before + value)
SHIM_EXCHANGED(double, atomicAdd, before + value)

template <class To, class From> static inline To shim_bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "bits are as many before as after");
    To to;
    __builtin_memcpy(&to, &from, sizeof to);
    return to;
}
static inline double __longlong_as_double(long long bits) { return shim_bits<double>(bits); }
static inline long long __double_as_longlong(double value) { return shim_bits<long long>(value); }
static inline float __int_as_float(int bits) { return shim_bits<float>(bits); }
static inline int __float_as_int(float value) { return shim_bits<int>(value); }
static inline float __uint_as_float(shim_u32 bits) { return shim_bits<float>(bits); }
static inline shim_u32 __float_as_uint(float value) { return shim_bits<shim_u32>(value); }
static inline long long __mul64hi(long long a, long long b) { return (long long)(((__int128)a * b) >> 64); }
static inline shim_u64 __umul64hi(shim_u64 a, shim_u64 b) { return (shim_u64)(((unsigned __int128)a * b) >> 64); }
static inline int __popc(shim_u32 bits) { return __builtin_popcount(bits); }
static inline int __popcll(shim_u64 bits) { return __builtin_popcountll(bits); }
static inline int __clz(int bits) { return bits == 0 ? 32 : __builtin_clz((shim_u32)bits); }
static inline int __clzll(long long bits) { return bits == 0 ? 64 : __builtin_clzll((shim_u64)bits); }
static inline int __ffs(int bits) { return __builtin_ffs(bits); }
static inline int __ffsll(long long bits) { return __builtin_ffsll(bits); }
static inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
template <class T> static inline T __ldg(const T *place) { return *place; }

#define SHIM_MATH(name) \
    static inline double name(double value) { return __builtin_##name(value); } \
    static inline float name(float value) { return __builtin_##name##f(value); }
SHIM_MATH(floor)
SHIM_MATH(ceil)
SHIM_MATH(trunc)
SHIM_MATH(rint)
SHIM_MATH(round)
SHIM_MATH(fabs)
SHIM_MATH(sqrt)
static inline double fmod(double a, double b) { return __builtin_fmod(a, b); }
static inline double pow(double a, double b) { return __builtin_pow(a, b); }
static inline bool isnan(double value) { return __builtin_isnan(value); }

#ifdef __SANITIZE_ADDRESS__
extern "C" void __sanitizer_start_switch_fiber(void **fake, const void *bottom, unsigned long size);
extern "C" void __sanitizer_finish_switch_fiber(void *fake, const void **bottom, unsigned long *size);
#else
static inline void __sanitizer_start_switch_fiber(void **, const void *, unsigned long) {}
static inline void __sanitizer_finish_switch_fiber(void *, const void **, unsigned long *) {}
#endif

// How a launch ends; `queue.rs` says it in words.
enum { SHIM_DONE = 0, SHIM_ARGUMENTS = 1, SHIM_DIVERGED = 2, SHIM_MEMORY = 3 };

// The stack of a thread that waits at barriers. Sanitized frames are several times as large as others.
static const unsigned long SHIM_STACK = 256 << 10;

struct shim_thread {
    ucontext_t context;
    char *stack;
    bool over;
};

// The block that is running on this thread of the process.
struct shim_block {
    void (*body)(const void *);
    const void *arguments;
    void *shared;
    shim_thread *threads, *current;
    ucontext_t scheduler;
    // Where the scheduler's own stack is, as the first thread that it switches to is told.
    const void *bottom;
    unsigned long size;
    bool diverged;
};
static thread_local shim_block *shim_now;

static inline void *shim_dynamic_shared() { return shim_now->shared; }

static void shim_to_scheduler(bool over) {
    shim_block *block = shim_now;
    shim_thread *thread = block->current;
    thread->over = over;
    void *fake = nullptr;
    __sanitizer_start_switch_fiber(over ? nullptr : &fake, block->bottom, block->size);
    swapcontext(&thread->context, &block->scheduler);
    __sanitizer_finish_switch_fiber(fake, &block->bottom, &block->size);
}

static void shim_to_thread(unsigned at) {
    shim_block *block = shim_now;
    block->current = &block->threads[at];
    threadIdx.x = at;
    void *fake = nullptr;
    __sanitizer_start_switch_fiber(&fake, block->current->stack, SHIM_STACK);
    swapcontext(&block->scheduler, &block->current->context);
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
    block->current = nullptr;
}

static void shim_enter() {
    __sanitizer_finish_switch_fiber(nullptr, &shim_now->bottom, &shim_now->size);
    shim_now->body(shim_now->arguments);
    shim_to_scheduler(true);
}

static inline void __syncthreads() {
    // A thread without a stack of its own: the first of its block met no barrier.
    if (!shim_now->current) shim_now->diverged = true;
    else shim_to_scheduler(false);
}

static bool shim_begin(unsigned at) {
    shim_thread *thread = &shim_now->threads[at];
    if (!thread->stack) thread->stack = (char *)__builtin_malloc(SHIM_STACK);
    if (!thread->stack || getcontext(&thread->context) != 0) return false;
    thread->context.uc_stack.ss_sp = thread->stack;
    thread->context.uc_stack.ss_size = SHIM_STACK;
    thread->context.uc_link = nullptr;
    thread->over = false;
    makecontext(&thread->context, shim_enter, 0);
    return true;
}

// Runs the threads of a block. The first runs on a stack of its own: only if it meets a barrier do the others need one.
static int shim_run_block(unsigned threads) {
    shim_block *block = shim_now;
    if (!shim_begin(0)) return SHIM_MEMORY;
    shim_to_thread(0);
    if (block->threads[0].over) {
        for (threadIdx.x = 1; threadIdx.x < threads; threadIdx.x++) block->body(block->arguments);
        return block->diverged ? SHIM_DIVERGED : SHIM_DONE;
    }
    for (unsigned at = 1; at < threads; at++) {
        if (!shim_begin(at)) return SHIM_MEMORY;
        shim_to_thread(at);
    }
    // All threads of a block meet a barrier, or none: so OpenCL has it, too.
    for (;;) {
        unsigned over = 0;
        for (unsigned at = 0; at < threads; at++) over += block->threads[at].over;
        if (over == threads) return SHIM_DONE;
        if (over > 0) return SHIM_DIVERGED;
        for (unsigned at = 0; at < threads; at++) shim_to_thread(at);
    }
}

static int shim_run(void (*body)(const void *), const void *arguments, unsigned blocks, unsigned threads, unsigned long shared) {
    shim_block block = {};
    block.body = body;
    block.arguments = arguments;
    block.threads = (shim_thread *)__builtin_calloc(threads, sizeof(shim_thread));
    if (!block.threads) return SHIM_MEMORY;
    shim_now = &block;
    blockDim = {threads, 1, 1};
    gridDim = {blocks, 1, 1};
    threadIdx = {0, 0, 0};
    int status = SHIM_DONE;
    for (unsigned at = 0; at < blocks && status == SHIM_DONE; at++) {
        blockIdx = {at, 0, 0};
        // Fresh for each block, so that a sanitizer knows its end.
        block.shared = shared == 0 ? nullptr : __builtin_malloc(shared);
        status = shared != 0 && !block.shared ? SHIM_MEMORY : shim_run_block(threads);
        __builtin_free(block.shared);
    }
    for (unsigned at = 0; at < threads; at++) __builtin_free(block.threads[at].stack);
    __builtin_free(block.threads);
    shim_now = nullptr;
    return status;
}

template <int... I> struct shim_places {};
template <int N, int... I> struct shim_upto : shim_upto<N - 1, N - 1, I...> {};
template <int... I> struct shim_upto<0, I...> {
    typedef shim_places<I...> places;
};

template <class... A> struct shim_call {
    void (*kernel)(A...);
    void *const *values;

    template <int... I> void call(shim_places<I...>) const { kernel(*(const A *)values[I]...); }
    static void body(const void *self) {
        ((const shim_call *)self)->call(typename shim_upto<sizeof...(A)>::places());
    }
};

// Launches a kernel with a pointer to each argument; `sizes` are those that the caller means them to have.
template <class... A>
static int shim_launch(void (*kernel)(A...), unsigned blocks, unsigned threads, unsigned long shared, void *const *values,
                       const unsigned char *sizes, unsigned long count) {
    const unsigned char declared[] = {sizeof(A)..., 0};
    if (count != sizeof...(A) || __builtin_memcmp(sizes, declared, count) != 0) return SHIM_ARGUMENTS;
    const shim_call<A...> call = {kernel, values};
    return shim_run(shim_call<A...>::body, &call, blocks, threads, shared);
}
