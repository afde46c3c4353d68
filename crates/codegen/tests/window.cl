KERNEL void contributions(
    const u32 rows,
    GLOBAL u32 *restrict r0,
    GLOBAL const i64 *c2,
    GLOBAL const u8 *c2n,
    GLOBAL i64 *restrict r1,
    GLOBAL i64 *restrict r2,
    GLOBAL f64 *restrict r3,
    GLOBAL const i64 *c4)
{
    FOR_ROWS(row, rows) {
        r0[row] = !c2n[row] ? 1 : 0;
        if (row + 1 == rows) r0[rows] = 0;
        r1[row] = !c2n[row] ? c2[row] : 0;
        if (row + 1 == rows) r1[rows] = 0;
        r2[rows + row] = !c2n[row] ? ~(c2[row]) : 0x7fffffffffffffffL;
        r3[rows + row] = AS_F64(c4[row]);
    }
}

KERNEL void window(
    const u32 rows,  // that come out
    GLOBAL const u32 *listed,
    GLOBAL const u32 *partitions,  // each row has its own behind its place
    GLOBAL const u32 *starts,
    GLOBAL const u32 *peers,  // as partitions
    GLOBAL const u32 *peer_starts,
    GLOBAL wide *restrict o0,
    GLOBAL i64 *restrict o1,
    const i64 k0,
    GLOBAL const u32 *r0,
    GLOBAL const u32 *r0rows,
    GLOBAL const i64 *c2,
    GLOBAL const u8 *c2n,
    GLOBAL i64 *restrict o2,
    GLOBAL u8 *restrict o2n,
    GLOBAL const i64 *c1,
    const i64 k1,
    const i64 k2,
    const i64 k3,
    GLOBAL const wide *c3,
    GLOBAL wide *restrict o3,
    GLOBAL u8 *restrict o3n,
    const i64 k4,
    GLOBAL i64 *restrict o4,
    const i64 k5,
    const i64 k6,
    GLOBAL const i64 *r1,
    GLOBAL i32 *failed,  // set when a value is not finished here
    GLOBAL wide *restrict o5,
    GLOBAL u8 *restrict o5n,
    const u32 all,  // rows, whether they come out or not
    GLOBAL const i64 *r2,
    GLOBAL i64 *restrict o6,
    GLOBAL u8 *restrict o6n,
    GLOBAL const f64 *r3,
    GLOBAL i64 *restrict o7,
    GLOBAL u8 *restrict o7n)
{
    FOR_ROWS(at, rows) {
        const u32 row = listed[at];
        const u32 t0 = partitions[row + 1];
        const u32 t1 = starts[t0];
        const u32 t2 = starts[t0 + 1];
        const u32 t3 = peer_starts[peers[row + 1]];
        const u32 t4 = peer_starts[peers[row + 1] + 1];
        o0[at] = wide_of((i64)(t3 - t1) + 1);
        o1[at] = AS_I64((f64)(t4 - t1) / (f64)(t2 - t1));
        const i64 t5 = (i64)r0[row] - k0;
        const u32 t6 = t5 >= (i64)r0[t1] && t5 < (i64)r0[t2] ? r0rows[t5] : 0xffffffffu;
        o2[at] = t6 == 0xffffffffu ? 0 : c2[t6];
        o2n[at] = (u8)(t6 == 0xffffffffu ? 1 : c2n[t6]);
        const u32 t7 = frame_reach(c1, t1, t2, c1[row], k1, 1, 0);
        const u32 t8 = frame_reach(c1, t1, t2, c1[row], k2, 1, 1);
        const u32 t9 = t8 > t7 ? t8 : t7;
        const i64 t10 = (i64)t9 + k3;
        const u32 t11 = t10 >= (i64)t7 && t10 < (i64)t9 ? (u32)t10 : 0xffffffffu;
        o3[at] = t11 == 0xffffffffu ? wide_of(0) : c3[t11];
        o3n[at] = (u8)(t11 == 0xffffffffu ? 1 : 0);
        const u32 t12 = peer_starts[frame_end((i64)peers[row + 1] + k4, peers[t1 + 1], peers[t2] + 1)];
        const u32 t13 = t2;
        const u32 t14 = t13 > t12 ? t13 : t12;
        o4[at] = (t14 - t12);
        const u32 t15 = frame_end((i64)row + k5, t1, t2);
        const u32 t16 = frame_end((i64)row + k6, t1, t2);
        const u32 t17 = t16 > t15 ? t16 : t15;
        const u32 t18 = r0[t17] - r0[t15];
        const wide t19 = wide_of(WRAP_SUBTRACT(r1[t17], r1[t15]));
        if (wide_order(t19, wide_from((i64)0xfffffffffff7ba6aUL, 0xe9ebfeb7b6000001UL)) < 0 || wide_order(t19, wide_from((i64)0x84595UL, 0x1614014849ffffffUL)) > 0) RAISE(failed);
        o5[at] = t19;
        o5n[at] = (u8)(!t18);
        const u32 t20 = r0[t17] - r0[t15];
        const i64 t21 = frame_least(r2, all, t15, t17);
        o6[at] = ~(t21);
        o6n[at] = (u8)(!t20);
        const f64 t22 = frame_sum(r3, all, t7, t9);
        o7[at] = AS_I64(t22 / (f64)(t9 - t7));
        o7n[at] = (u8)(!(t9 - t7));
    }
}
