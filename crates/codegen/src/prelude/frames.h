// Frames of rows that lie in order: from one row to another.
FUNCTION u32 frame_end(i64 row, u32 first, u32 behind) {
    return row < (i64)first ? first : row > (i64)behind ? behind : (u32)row;
}
// The first of some rows, of which those with a flag come first, that does not have it.
FUNCTION u32 frame_switch(GLOBAL const u8 *nulls, u32 from, u32 to, u32 flag) {
    while (from < to) {
        const u32 middle = from + (to - from) / 2;
        if (nulls[middle] == flag) from = middle + 1;
        else to = middle;
    }
    return from;
}
// The first of some rows that is so far from a key, or further, in the direction of the order.
FUNCTION u32 frame_reach(
    GLOBAL const i64 *keys, u32 from, u32 to, i64 key, i64 bound, int descending, int further)
{
    const i64 at = descending ? ~key : key, wanted = WRAP_ADD(at, bound);
    if (SUM_LEFT(at, bound, wanted)) return bound < 0 ? from : to;
    while (from < to) {
        const u32 middle = from + (to - from) / 2;
        const i64 found = descending ? ~keys[middle] : keys[middle];
        if (found < wanted || (further && found == wanted)) from = middle + 1;
        else to = middle;
    }
    return from;
}
// The bucket of a row of a partition: the first buckets have one row more.
FUNCTION i64 frame_bucket(u64 row, u64 rows, u64 buckets) {
    const u64 size = rows / buckets, larger = rows % buckets, behind = larger * (size + 1);
    return (i64)(row < behind ? row / (size + 1) : larger + (row - behind) / size) + 1;
}
// What the rows of a frame come to: some nodes of a segment tree, whose last half are all rows.
#define TREE_OF_FRAME(name, type, empty, both) \
    FUNCTION type name(GLOBAL const type *tree, u32 rows, u32 from, u32 to) { \
        type all = empty; \
        u32 left = rows + from, right = rows + to; \
        while (left < right) { \
            if (left & 1) { all = both(all, tree[left]); left++; } \
            if (right & 1) { right--; all = both(all, tree[right]); } \
            left >>= 1; \
            right >>= 1; \
        } \
        return all; \
    }
#define SMALLER(a, b) ((a) < (b) ? (a) : (b))
#define ADDED(a, b) ((a) + (b))
TREE_OF_FRAME(frame_least, i64, 0x7fffffffffffffffL, SMALLER)
#ifdef WIDE
TREE_OF_FRAME(frame_least_wide, wide, wide_from(0x7fffffffffffffffL, 0xffffffffffffffffUL), wide_least)
#endif
#ifdef FP64
TREE_OF_FRAME(frame_sum, f64, 0, ADDED)
TREE_OF_FRAME(frame_moments, moments, moments_from(0, 0, 0), moments_merge)
#endif

