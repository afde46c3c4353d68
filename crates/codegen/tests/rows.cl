KERNEL void rows(
    const u32 rows,
    const u32 writes,  // rows, or only counts them
    GLOBAL u32 *counts,  // rows kept by each work-item, then where each begins to write
    const u32 from,  // where this part's counts begin
    GLOBAL const u16 *c0,  // lo_suppkey
    const u32 shift0,
    GLOBAL const u8 *set0,
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
    GLOBAL i64 *restrict o0,
    GLOBAL i64 *restrict o1,
    GLOBAL u8 *restrict o1n,
    GLOBAL i64 *restrict o2,
    GLOBAL u8 *restrict o2n,
    GLOBAL u64 *restrict s0,
    GLOBAL u64 *restrict s1)
{
    if (writes) {
        u32 place = counts[from + ITEM];
        FOR_STRIPS(strip, rows) {
            STRIP_OF_ROWS(strip);
            LIST_ROWS(row, set0[(u32)c0[row] + shift0]);
            KEEP_ROWS(row, IN_SET(set1, (u32)c1[row] + shift1));
            SHORT FOR_LISTED(at) {
                const u32 row = listed[at];
                const int t0 = !VALID(v2, row);
                const i64 t1 = b2 + (i64)c2[row];
                const int t2 = (t1 > (i32)k0);
                if (!(t2 & !t0)) continue;
                const u32 t3 = (u32)((i64)c1[row] + e0);
                const i64 t4 = p0_0b + (i64)p0_0[t3];
                o0[place] = t4;
                o1[place] = t1;
                o1n[place] = (u8)(t0);
                const i64 t5 = WRAP_MULTIPLY(t1, t1);
                const int t6 = t0 | (PRODUCT_LEFT(t1, t1, t5));
                o2[place] = t5;
                o2n[place] = (u8)(t6);
                s0[place] = (t0) != 0;
                s1[place] = t0 ? 0 : ~((u64)((i64)t1) ^ 0x8000000000000000UL);
                place++;
            }
        }
    } else {
        u64 kept = 0;
        FOR_STRIPS(strip, rows) {
            STRIP_OF_ROWS(strip);
            LIST_ROWS(row, set0[(u32)c0[row] + shift0]);
            KEEP_ROWS(row, IN_SET(set1, (u32)c1[row] + shift1));
            SHORT FOR_LISTED(at) {
                const u32 row = listed[at];
                const int t0 = !VALID(v2, row);
                const i64 t1 = b2 + (i64)c2[row];
                const int t2 = (t1 > (i32)k0);
                if (!(t2 & !t0)) continue;
                kept++;
            }
        }
        counts[from + ITEM] = SATURATED(kept);
    }
}
