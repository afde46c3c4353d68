KERNEL void pipeline(
    const u32 rows,
    GLOBAL i64 *groups,  // a table for each work-item
    const u32 first_table,  // of this launch's
    GLOBAL const u32 *c0,  // l_extendedprice
    const i64 b0,
    const i64 k0,
    GLOBAL const u8 *c1,  // l_discount
    const i64 b1,
    const i64 k1,
    GLOBAL const u8 *c2,  // l_tax
    GLOBAL const u64 *v2,
    const i64 b2)
{
    GLOBAL i64 *const table = TABLE(groups, first_table, 4UL);
    i64 a0 = 0;
    i64 a2 = 0, a3 = 0;
    i64 a1 = 0;
    FOR_ROWS(row, rows) {
        const i32 t0 = (i32)((u32)b0 + (u32)c0[row]);
        const i32 t1 = (i32)((u32)b1 + (u32)c1[row]);
        const i32 t2 = WRAP_SUBTRACT32((i32)k0, t1);
        const i32 t3 = WRAP_MULTIPLY32(t0, t2);
        const int t4 = !VALID(v2, row);
        const i32 t5 = (i32)((u32)b2 + (u32)c2[row]);
        const i32 t6 = WRAP_ADD32((i32)k1, t5);
        const i64 t7 = (i64)t3 * t6;
        a0 += 1;
        if (!t4) {
            a2 += (t7 & 0xffffffffL);
            a3 += (t7 >> 32);
            a1 += 1;
        }
    }
    ADD(table + 0, a0);
    ADD(table + 2, a2);
    ADD(table + 3, a3);
    ADD(table + 1, a1);
}
