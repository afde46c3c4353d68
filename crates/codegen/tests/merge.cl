KERNEL void pipeline(
    const u32 rows,
    GLOBAL i64 *groups,  // a table for each work-item
    const u32 first_table,  // of this launch's
    GLOBAL const u8 *c1,  // l_quantity
    const u8 low0,
    const u8 span0,
    GLOBAL const u32 *c0,  // l_orderkey
    const i64 b0,
    const i64 k0,
    const i64 k1,
    const i64 k2,
    const i64 k3,
    GLOBAL const u64 *keys0,
    GLOBAL u8 *matched0,  // set where an entry has a row
    const i64 b1,
    GLOBAL const u8 *p0_1,  // o_shippriority
    const i64 p0_1b,
    GLOBAL const u8 *p0_0,  // o_orderpriority
    const i64 p0_0b,
    const i64 k4)
{
    u32 cursor0 = 0;
    GLOBAL i64 *const table = TABLE(groups, first_table, 24UL);
    FOR_STRIPS(strip, rows) {
        STRIP_OF_ROWS(strip);
        MASK_ROWS(row, = ((u8)(c1[row] - low0) <= span0));
        LIST_FEW_MASKED_ROWS();
        FOR_LISTED(at) {
            const u32 row = listed[at];
            const i64 t0 = b0 + (i64)c0[row];
            const i64 t1 = (i64)t0;
            const u64 t2 = (u64)t1 - (u64)k0;
            const u64 t3 = ((t2 + 1) << k2);
            const int t4 = 1 && (t1 >= k0 && t2 < (u64)k1);
            u32 start0 = 0, end0 = 0;
            if (t4) start0 = find_sorted(keys0, (u32)k3, t3, &cursor0, &end0);
            const int t5 = start0 == end0;
            if (!t5) {
                matched0[start0] = 1;
            }
            const i64 t6 = b1 + (i64)c1[row];
            const i64 t7 = t5 ? 0 : p0_1b + (i64)p0_1[start0];
            const i64 t8 = WRAP_MULTIPLY(t6, t7);
            const i64 t9 = t5 ? 0 : p0_0b + (i64)p0_0[start0];
            const u32 t10 = (t5 ? 5u : (u32)((u64)t9 - (u64)k4));
            GLOBAL i64 *const group = table + (u64)t10 * 4;
            ADD(group + 0, 1);
            if (!t5) {
                ADD(group + 2, (t8 & 0xffffffffL));
                ADD(group + 3, (t8 >> 32));
                ADD(group + 1, 1);
            }
        }
    }
}
