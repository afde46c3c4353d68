/* Reads all values once; CHUNKED for devices whose work-items like contiguous ranges. */
KERNEL read_all(GLOBAL const ulong *values, ulong count, GLOBAL ulong *sums) {
    ulong sum = 0;
#ifdef CHUNKED
    ulong chunk = (count + GLOBAL_SIZE() - 1) / GLOBAL_SIZE();
    ulong first = GLOBAL_ID() * chunk;
    ulong last = first + chunk < count ? first + chunk : count;
    for (ulong i = first; i < last; i++) sum += values[i];
#else
    for (ulong i = GLOBAL_ID(); i < count; i += GLOBAL_SIZE()) sum += values[i];
#endif
    sums[GLOBAL_ID()] = sum;
}
