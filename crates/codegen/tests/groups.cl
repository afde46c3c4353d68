KERNEL void pipeline(
    const u32 rows,
    GLOBAL i64 *groups,  // one table, or one for each work-item
    GLOBAL const u16 *c0,  // lo_suppkey
    GLOBAL const u32 *set0,
    const u32 shift0,
    GLOBAL const u32 *c1,  // lo_partkey
    GLOBAL const u32 *set1,
    const u32 shift1,
    GLOBAL const u32 *c2,  // lo_revenue
    GLOBAL const u64 *v2,
    const i64 b2,
    const i64 k0,
    const i64 e0,
    GLOBAL const u16 *p0_0,  // p_brand1
    const i64 p0_0b,
    const i64 k1,
    const i64 e1,
    GLOBAL const u8 *p1_2,  // s_region
    const i64 p1_2b,
    GLOBAL const u64 *p1_2v,
    const i64 k2)
{
    GLOBAL i64 *const table = TABLE(groups, 24000UL);
    FOR_ROWS(row, rows) {
        const u32 t0 = (u32)c0[row] + shift0;
        if (!(IN_SET(set0, t0))) continue;
        const u32 t1 = (u32)c1[row] + shift1;
        if (!(IN_SET(set1, t1))) continue;
        const int t2 = !VALID(v2, row);
        const i64 t3 = b2 + (i64)c2[row];
        const int t4 = (t3 > (i32)k0);
        if (!(t4 & !t2)) continue;
        const u32 t5 = (u32)((i64)c1[row] + e0);
        const i64 t6 = p0_0b + (i64)p0_0[t5];
        const u32 t7 = (u32)(t6 - k1);
        const u32 t8 = (u32)((i64)c0[row] + e1);
        const int t9 = !VALID(p1_2v, t8);
        const i64 t10 = p1_2b + (i64)p1_2[t8];
        const u32 t11 = t7 * 6u + (t9 ? 5u : (u32)(t10 - k2));
        GLOBAL i64 *const group = table + (u64)t11 * 4;
        ADD(group + 0, 1);
        if (!t2) {
            ADD(group + 2, (t3 & 0xffffffffL));
            ADD(group + 3, (t3 >> 32));
            ADD(group + 1, 1);
        }
    }
}
