KERNEL void pipeline(
    const u32 rows,
    GLOBAL i64 *groups,  // one table
    GLOBAL const u16 *c0,  // lo_suppkey
    const u32 shift0,
    GLOBAL const u32 *set0,
    GLOBAL const u32 *c1,  // lo_partkey
    const u32 shift1,
    GLOBAL const u32 *set1,
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
    GLOBAL i64 *const table = groups;
    LOCAL_TABLE(own, 241);
    FOR_OWN(at, 241u) {
        own[at] = 0;
    }
    BARRIER();
    FOR_ROWS(row, rows) {
        if (!IN_SET(set0, (u32)c0[row] + shift0)) continue;
        if (!IN_SET(set1, (u32)c1[row] + shift1)) continue;
        const int t0 = !VALID(v2, row);
        const i64 t1 = b2 + (i64)c2[row];
        const int t2 = (t1 > (i32)k0);
        if (!(t2 & !t0)) continue;
        const u32 t3 = (u32)((i64)c1[row] + e0);
        const i64 t4 = p0_0b + (i64)p0_0[t3];
        const u32 t5 = (u32)((u64)t4 - (u64)k1);
        const u32 t6 = (u32)((i64)c0[row] + e1);
        const int t7 = !VALID(p1_2v, t6);
        const i64 t8 = p1_2b + (i64)p1_2[t6];
        const u32 t9 = t5 * 6u + (t7 ? 5u : (u32)((u64)t8 - (u64)k2));
        LOCAL i64 *const group = own + t9 * 4;
        LOCAL_ADD(group + 0, 1);
        if (!t0) {
            LOCAL_ADD(group + 2, (t1 & 0xffffffffL));
            LOCAL_ADD(group + 3, (t1 >> 32));
            LOCAL_ADD(group + 1, 1);
        }
    }
    BARRIER();
    FOR_OWN(at, 60u) {
        if (!own[at * 4 + 0]) continue;
        ADD(table + at * 4 + 0, own[at * 4 + 0]);
        ADD(table + at * 4 + 2, own[at * 4 + 2]);
        ADD(table + at * 4 + 3, own[at * 4 + 3]);
        ADD(table + at * 4 + 1, own[at * 4 + 1]);
    }
}
