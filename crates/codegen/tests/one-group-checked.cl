KERNEL void pipeline(
    const u32 rows,
    GLOBAL i64 *groups,  // a table for each work-item
    const u32 first_table,  // of this launch's
    GLOBAL const u16 *c0,  // lo_orderdate
    const u16 low0,
    const u16 span0,
    GLOBAL const u8 *c1,  // lo_quantity
    const u8 low1,
    const u8 span1,
    GLOBAL const u8 *c3,  // lo_discount
    const u8 low2,
    const u8 span2,
    GLOBAL const u32 *c2,  // lo_extendedprice
    const i64 b2,
    const i64 b3,
    GLOBAL i32 *failed)  // set when a row has no value
{
    GLOBAL i64 *const table = TABLE(groups, first_table, 2UL);
    i64 a0 = 0;
    i64 a1 = 0;
    FOR_STRIPS(strip, rows) {
        STRIP_OF_ROWS(strip);
        MASK_ROWS(row, = ((u16)(c0[row] - low0) <= span0));
        MASK_ROWS(row, &= ((u8)(c1[row] - low1) <= span1));
        MASK_ROWS(row, &= ((u8)(c3[row] - low2) <= span2));
        LIST_FEW_MASKED_ROWS();
        FOR_LISTED(at) {
            const u32 row = listed[at];
            const i64 t0 = b2 + (i64)c2[row];
            const i64 t1 = b3 + (i64)c3[row];
            const i64 t2 = WRAP_MULTIPLY(t0, t1);
            if (PRODUCT_LEFT(t0, t1, t2)) *failed = 1;
            a0 += 1;
            a1 += t2;
        }
    }
    ADD(table + 0, a0);
    ADD(table + 1, a1);
}
