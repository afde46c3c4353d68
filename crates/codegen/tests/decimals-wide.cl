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
    const i64 b2,
    GLOBAL i32 *failed)  // set when a row has no value
{
    GLOBAL i64 *const table = TABLE(groups, first_table, 6UL);
    i64 a0 = 0;
    i64 a2 = 0;
    i64 a3 = 0;
    i64 a4 = 0;
    i64 a5 = 0;
    i64 a1 = 0;
    FOR_ROWS(row, rows) {
        const i64 t0 = b0 + (i64)c0[row];
        const i64 t1 = b1 + (i64)c1[row];
        const i64 t2 = WRAP_SUBTRACT((i64)(i32)k0, t1);
        const wide t3 = wide_product(t0, t2);
        const int t4 = !VALID(v2, row);
        const i64 t5 = b2 + (i64)c2[row];
        const i64 t6 = WRAP_ADD((i64)(i32)k1, t5);
        const wide t7 = wide_multiply(t3, wide_of(t6));
        if (!(t4) && (wide_product_left(t3, wide_of(t6), t7) || (wide_order(t7, wide_from(-5421010862427522171L, 0xf675ddc000000001UL)) < 0) || (wide_order(t7, wide_from(5421010862427522170L, 0x98a223fffffffffUL)) > 0))) *failed = 1;
        a0 += 1;
        const wide t8 = t7;
        if (!t4) {
            a2 += (i64)(t8.low & 0xffffffffL);
            a3 += (i64)(t8.low >> 32);
            a4 += (i64)(t8.high & 0xffffffffL);
            a5 += (i64)(t8.high >> 32);
            a1 += 1;
        }
    }
    ADD(table + 0, a0);
    ADD(table + 2, a2);
    ADD(table + 3, a3);
    ADD(table + 4, a4);
    ADD(table + 5, a5);
    ADD(table + 1, a1);
}
