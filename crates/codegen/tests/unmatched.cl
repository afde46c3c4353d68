KERNEL void pipeline(
    const u32 rows,
    GLOBAL i64 *groups,  // a table for each work-item
    const u32 first_table,  // of this launch's
    GLOBAL u8 *matched0,  // set where an entry has a row
    GLOBAL const u8 *p0_1,  // o_shippriority
    const i64 p0_1b,
    GLOBAL const u8 *p0_0,  // o_orderpriority
    const i64 p0_0b,
    const i64 k0)
{
    GLOBAL i64 *const table = TABLE(groups, first_table, 24UL);
    FOR_ROWS(row, rows) {
        if (matched0[row]) continue;
        const i64 t0 = p0_1b + (i64)p0_1[row];
        const i32 t1 = WRAP_MULTIPLY32((i32)0, t0);
        const i64 t2 = p0_0b + (i64)p0_0[row];
        const u32 t3 = (u32)((u64)t2 - (u64)k0);
        GLOBAL i64 *const group = table + (u64)t3 * 4;
        ADD(group + 0, 1);
        if (!1) {
            ADD(group + 2, ((i64)t1 & 0xffffffffL));
            ADD(group + 3, ((i64)t1 >> 32));
            ADD(group + 1, 1);
        }
    }
}
