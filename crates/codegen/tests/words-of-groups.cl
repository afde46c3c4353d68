KERNEL void pipeline(
    const u32 rows,
    GLOBAL i64 *groups,  // one table
    GLOBAL const u8 *c0,  // brand
    GLOBAL const u64 *v0,
    const i64 b0,
    const i64 k0,
    GLOBAL const u64 *c1,  // year
    const i64 b1,
    const i64 k1,
    GLOBAL u64 *numbers,  // whose group it is
    const u32 mask,  // places of the hash table, less one
    GLOBAL i32 *full,  // set when the hash table is too small
    GLOBAL const u32 *c2,  // price
    GLOBAL const u64 *v2,
    const i64 b2,
    GLOBAL const wide *c3,  // charge
    const i64 k2)
{
    GLOBAL i64 *const table = groups;
    FOR_ROWS(row, rows) {
        const int t0 = !VALID(v0, row);
        const i32 t1 = (i32)((u32)b0 + (u32)c0[row]);
        const i64 t2 = b1 + (i64)c1[row];
        const u64 t3 = ((u64)(t0 ? 6u : (u64)((u64)t1 - (u64)k0)) << 0) | ((u64)(u64)((u64)t2 - (u64)k1) << 3);
        const u32 t4 = group_place(numbers, mask, t3);
        if (t4 > mask) { RAISE(full); continue; }
        GLOBAL i64 *const group = table + (u64)t4 * 12;
        const int t5 = !VALID(v2, row);
        const i32 t6 = (i32)((u32)b2 + (u32)c2[row]);
        const wide t7 = c3[row];
        ATOMIC_ADD(group + 0, 1);
        if (!t5) {
            ATOMIC_ADD(group + 2, t6);
            ATOMIC_ADD(group + 1, 1);
        }
        if (!t5) {
            ATOMIC_ADD(group + 4, ((i64)t6 & 0xffffffffL));
            ATOMIC_ADD(group + 5, ((i64)t6 >> 32));
            ATOMIC_ADD(group + 3, 1);
        }
        const i64 t8 = WRAP_SUBTRACT(t6, k2);
        if (!t5) {
            ATOMIC_MOST_32(group + 7, t8);
            ATOMIC_ADD(group + 6, 1);
        }
        const wide t9 = t7;
        ATOMIC_ADD(group + 8, (i64)(t9.low & 0xffffffffL));
        ATOMIC_ADD(group + 9, (i64)(t9.low >> 32));
        ATOMIC_ADD(group + 10, (i64)(t9.high & 0xffffffffL));
        ATOMIC_ADD(group + 11, (i64)(t9.high >> 32));
    }
}
