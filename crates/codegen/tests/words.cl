KERNEL void pipeline(
    const u32 rows,
    GLOBAL i64 *groups,  // a table for each work-item
    const u32 first_table,  // of this launch's
    GLOBAL const u16 *c0,  // p_type
    GLOBAL const u64 *v0,
    const i64 b0,
    GLOBAL const u8 *m6,  // a number for each word
    GLOBAL const u8 *m6n)
{
    GLOBAL i64 *const table = TABLE(groups, first_table, 1UL);
    i64 a0 = 0;
    FOR_ROWS(row, rows) {
        const int t0 = !VALID(v0, row);
        const i64 t1 = b0 + (i64)c0[row];
        const u32 t2 = t0 ? 0 : (u32)t1 + 1;
        const int t3 = m6n[t2];
        const int t4 = (int)m6[t2];
        if (!(t4 & !t3)) continue;
        a0 += 1;
    }
    ADD(table + 0, a0);
}
