
// Windows, over rows in order. A row's segment is its partition, or its group of peers: `segments` has one number more than there
// are rows, first a mark where a row differs from the one before, then the sums of the marks before. So row i is of segment
// `segments[i + 1]`. What is counted of rows has one number more, too: `counts[i + 1]` differs from `counts[i]` where row i counts.
KERNEL void mark_differences(
    GLOBAL const u64 *keys, GLOBAL const u32 *order, const u32 count, GLOBAL u32 *partitions, GLOBAL u32 *peers)
{
    FOR_ROWS(i, count) {
        if (i == 0 || keys[order[i]] == keys[order[i - 1]]) continue;
        if (partitions) partitions[i] = 1;
        if (peers) peers[i] = 1;
    }
}
// The first row of each segment, and the end of the last.
KERNEL void list_starts(GLOBAL const u32 *segments, const u32 count, GLOBAL u32 *starts) {
    FOR_ROWS(i, count) {
        if (i == 0 || segments[i + 1] != segments[i]) starts[segments[i + 1]] = i;
        if (i + 1 == count) starts[segments[count] + 1] = count;
    }
}
// The rows that are counted.
KERNEL void list_counted(GLOBAL const u32 *counts, const u32 count, GLOBAL u32 *list) {
    FOR_ROWS(i, count) if (counts[i + 1] != counts[i]) list[counts[i]] = i;
}
// Whether each row is among the first of its partition, or the first of its peers is.
KERNEL void count_first(
    GLOBAL const u32 *partitions, GLOBAL const u32 *starts, GLOBAL const u32 *peers, GLOBAL const u32 *peer_starts,
    const u32 count, const u32 fetch, GLOBAL u32 *counts)
{
    FOR_ROWS(i, count + 1) {
        u32 wanted = 0;
        if (i < count) {
            const u32 first = partitions ? starts[partitions[i + 1]] : 0;
            wanted = (peers ? peer_starts[peers[i + 1]] : i) - first < fetch;
        }
        counts[i] = wanted;
    }
}

// Prefix sums of larger numbers: the sum of each share; then, of the sums by one work-item, and of the numbers after that, the
// sums before each.
#define SUM(name, type, zero, add) \
    KERNEL void name(GLOBAL const type *numbers, const u32 count, GLOBAL type *sums) { \
        SHARE(count); \
        type sum = zero; \
        for (u32 i = begin; i < end; i++) sum = add(sum, numbers[i]); \
        sums[ITEM] = sum; \
    }
SUM(sum_shares_64, i64, 0, WRAP_ADD)
SUM(sum_shares_128, wide, wide_of(0), wide_add)
#define SCAN(name, type, zero, add) \
    KERNEL void name(GLOBAL type *numbers, const u32 count, GLOBAL const type *sums) { \
        SHARE(count); \
        type before = zero; \
        if (sums) before = sums[ITEM]; \
        for (u32 i = begin; i < end; i++) { \
            const type number = numbers[i]; \
            numbers[i] = before; \
            before = add(before, number); \
        } \
    }
SCAN(scan_shares_64, i64, 0, WRAP_ADD)
SCAN(scan_shares_128, wide, wide_of(0), wide_add)

// The nodes of a segment tree from one on to another: node i has what nodes 2i and 2i + 1 come to, and the last half of all are the
// rows. Those of one level by any number of work-items; of several levels by one, the last node first.
#define SMALLER(a, b) ((a) < (b) ? (a) : (b))
#define ADDED(a, b) ((a) + (b))
#define TREE(name, type, both) \
    KERNEL void name(GLOBAL type *tree, const u32 from, const u32 to) { \
        FOR_ROWS(i, to - from) { \
            const u32 node = to - 1 - i; \
            tree[node] = both(tree[2 * node], tree[2 * node + 1]); \
        } \
    }
TREE(tree_least_64, i64, SMALLER)
TREE(tree_least_128, wide, wide_least)
TREE(tree_sum, f64, ADDED)
TREE(tree_moments, moments, moments_merge)
