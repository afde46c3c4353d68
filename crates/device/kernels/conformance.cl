/* The kernels of the conformance suite. */

/* Every kind of argument: the sum of all scalars, plus 1000 if the null pointer is one, to each place. */
KERNEL all_arguments(GLOBAL ulong *out, GLOBAL const uchar *null, int a, uint b, i64 c, ulong d LOCAL_PARAMETER(uint, scratch)) {
    LOCAL_VARIABLE(uint, scratch);
    scratch[LOCAL_ID()] = LOCAL_ID();
    GROUP_BARRIER();
    /* The neighbour's number, through local memory. */
    uint next = scratch[(LOCAL_ID() + 1) % LOCAL_SIZE()];
    out[GLOBAL_ID()] = (ulong)(i64)a + (ulong)c + b + d + next + (null ? 0 : 1000);
}

/* Reverses each group through local memory. */
KERNEL reverse_groups(GLOBAL const uint *in, GLOBAL uint *out LOCAL_PARAMETER(uint, scratch)) {
    LOCAL_VARIABLE(uint, scratch);
    scratch[LOCAL_ID()] = in[GLOBAL_ID()];
    GROUP_BARRIER();
    out[GLOBAL_ID()] = scratch[LOCAL_SIZE() - 1 - LOCAL_ID()];
}

/* value = value * factor + term: the order of two such steps shows in the result. */
KERNEL multiply_add(GLOBAL uint *values, uint count, uint factor, uint term) {
    for (ulong i = GLOBAL_ID(); i < count; i += GLOBAL_SIZE()) values[i] = values[i] * factor + term;
}

/* Adds the sum of all bytes to one counter. */
KERNEL sum_bytes(GLOBAL const uchar *bytes, ulong count, GLOBAL uint *sum) {
    uint mine = 0;
    for (ulong i = GLOBAL_ID(); i < count; i += GLOBAL_SIZE()) mine += bytes[i];
    ATOMIC_ADD(sum, mine);
}

/* Takes as long as there are rounds, and reads all the while. */
KERNEL churn(GLOBAL const uchar *bytes, ulong rounds, GLOBAL uint *out) {
    uint x = 1;
    for (ulong i = 0; i < rounds; i++) x = x * 1664525u + bytes[(x ^ i) & 4095];
    out[GLOBAL_ID()] = x;
}
