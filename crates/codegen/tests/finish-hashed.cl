KERNEL void rows(
    const u32 writes,  // rows, or only counts them
    GLOBAL u32 *counts,  // groups of each work-item, then where each begins to write
    const u32 places,  // of each table
    GLOBAL const i64 *groups,
    const u32 tables,
    GLOBAL const u64 *numbers,  // whose group it is
    const i64 k0,
    GLOBAL i64 *restrict o0,
    GLOBAL u8 *restrict o0n,
    const i64 k1,
    GLOBAL i64 *restrict o1,
    GLOBAL i64 *restrict o2,
    GLOBAL i32 *failed,  // set when a value is not finished here
    GLOBAL wide *restrict o3,
    GLOBAL u8 *restrict o3n,
    GLOBAL wide *restrict o4,
    GLOBAL u8 *restrict o4n,
    GLOBAL i64 *restrict o5,
    GLOBAL u8 *restrict o5n,
    GLOBAL wide *restrict o6)
{
    if (writes) {
        u32 place = counts[ITEM];
        FOR_ROWS(at, places) {
            if (numbers[at] == NO_NUMBER) continue;
            const u64 number = numbers[at];
            i64 n0 = 0;
            i64 n2 = 0;
            i64 n1 = 0;
            i64 n4 = 0;
            i64 n5 = 0;
            i64 n3 = 0;
            i64 n7 = -0x7fffffffffffffffL - 1;
            i64 n6 = 0;
            i64 n8 = 0;
            i64 n9 = 0;
            i64 n10 = 0;
            i64 n11 = 0;
            for (u32 table = 0; table < tables; table++) {
                GLOBAL const i64 *const group = groups + ((u64)table * places + at) * 12;
                n0 += group[0];
                n2 += group[2];
                n1 += group[1];
                n4 += group[4];
                n5 += group[5];
                n3 += group[3];
                if ((i64)group[7] > n7) n7 = (i64)group[7];
                n6 += group[6];
                n8 += group[8];
                n9 += group[9];
                n10 += group[10];
                n11 += group[11];
            }
            const u64 t0 = number >> 0 & 0x7UL;
            o0[place] = WRAP_ADD(k0, t0);
            o0n[place] = (u8)(t0 == 6u);
            const u64 t1 = number >> 3 & 0xffffffffffUL;
            o1[place] = WRAP_ADD(k1, t1);
            o2[place] = n0;
            const wide t2 = wide_of(n2);
            if (wide_order(t2, wide_from((i64)0xfffffffffff7ba6aUL, 0xe9ebfeb7b6000001UL)) < 0 || wide_order(t2, wide_from((i64)0x84595UL, 0x1614014849ffffffUL)) > 0) RAISE(failed);
            o3[place] = t2;
            o3n[place] = (u8)(!n1);
            const wide t3 = wide_of_halves(n4, n5);
            const wide t4 = wide_from((i64)0x0UL, 0x2710UL);
            const wide t5 = wide_multiply(t3, t4);
            const wide t6 = wide_divide(t5, wide_of(n3));
            if (n3 > 2147483648L || wide_product_left(t3, t4, t5)) RAISE(failed);
            o4[place] = t6;
            o4n[place] = (u8)(!n3 || wide_order(t6, wide_from((i64)0xffffffffffffffffUL, 0x7538dcfb76180001UL)) < 0 || wide_order(t6, wide_from((i64)0x0UL, 0x8ac7230489e7ffffUL)) > 0);
            o5[place] = n7;
            o5n[place] = (u8)(!n6);
            const wide t7 = wide_of_limbs(n8, n9, n10, n11);
            if (n0 > 2147483648L || limbs_left(n8, n9, n10, n11) || wide_order(t7, wide_from((i64)0xb4c4b357a5793b85UL, 0xf675ddc000000001UL)) < 0 || wide_order(t7, wide_from((i64)0x4b3b4ca85a86c47aUL, 0x98a223fffffffffUL)) > 0) RAISE(failed);
            o6[place] = t7;
            place++;
        }
    } else {
        u32 kept = 0;
        FOR_ROWS(at, places) {
            if (numbers[at] == NO_NUMBER) continue;
            const u64 number = numbers[at];
            i64 n0 = 0;
            for (u32 table = 0; table < tables; table++) {
                GLOBAL const i64 *const group = groups + ((u64)table * places + at) * 12;
                n0 += group[0];
            }
            kept++;
        }
        counts[ITEM] = kept;
    }
}
