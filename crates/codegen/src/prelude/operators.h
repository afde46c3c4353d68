// What is the same for every pipeline. Things are dealt out in shares of neighbours, one for each work-item, so that what
// keeps an order keeps it.
#define SHARE(count) \
    const u32 share = ((count) + (u32)ITEMS - 1) / (u32)ITEMS; \
    const u32 begin = min((u32)ITEM * share, (u32)(count)), end = min(begin + share, (u32)(count))
#define DIGITS 256u
#define DIGIT(key) ((u32)((key) >> shift) & (DIGITS - 1))

// Prefix sums in three kernels: the sum of each share, the sums before each share (by one work-item; their total is
// behind them), and the sums before each number.
KERNEL void sum_shares(GLOBAL const u32 *numbers, const u32 count, GLOBAL u32 *sums) {
    SHARE(count);
    u32 sum = 0;
    for (u32 i = begin; i < end; i++) sum += numbers[i];
    sums[ITEM] = sum;
}
KERNEL void scan_sums(GLOBAL u32 *sums, const u32 shares) {
    u32 before = 0;
    for (u32 i = 0; i < shares; i++) {
        const u32 sum = sums[i];
        sums[i] = before;
        before += sum;
    }
    sums[shares] = before;
}
KERNEL void scan_shares(GLOBAL u32 *numbers, const u32 count, GLOBAL const u32 *sums) {
    SHARE(count);
    u32 before = sums[ITEM];
    for (u32 i = begin; i < end; i++) {
        const u32 number = numbers[i];
        numbers[i] = before;
        before += number;
    }
}

// A stable radix sort of row numbers by 64-bit ordinals, a byte at a time: each work-item counts the digits of its share,
// the counts (digit by digit, share by share) are summed up, each work-item moves its rows.
KERNEL void number_rows(GLOBAL u32 *order, const u32 count) {
    SHARE(count);
    for (u32 i = begin; i < end; i++) order[i] = i;
}
KERNEL void differing_bits(GLOBAL const u64 *keys, const u32 count, GLOBAL u64 *bits) {
    SHARE(count);
    u64 differing = 0;
    for (u32 i = begin; i < end; i++) differing |= keys[i] ^ keys[0];
    bits[ITEM] = differing;
}
KERNEL void count_digits(
    GLOBAL const u64 *keys, GLOBAL const u32 *order, const u32 count, const u32 shift, GLOBAL u32 *counts)
{
    SHARE(count);
    for (u32 digit = 0; digit < DIGITS; digit++) counts[digit * (u32)ITEMS + (u32)ITEM] = 0;
    for (u32 i = begin; i < end; i++) counts[DIGIT(keys[order[i]]) * (u32)ITEMS + (u32)ITEM]++;
}
KERNEL void move_by_digit(
    GLOBAL const u64 *keys, GLOBAL const u32 *order, const u32 count, const u32 shift, GLOBAL u32 *counts,
    GLOBAL u32 *moved)
{
    SHARE(count);
    for (u32 i = begin; i < end; i++) {
        const u32 row = order[i];
        moved[counts[DIGIT(keys[row]) * (u32)ITEMS + (u32)ITEM]++] = row;
    }
}

// Values in the order of row numbers.
KERNEL void gather_64(GLOBAL const u64 *values, GLOBAL const u32 *order, const u32 count, GLOBAL u64 *out) {
    FOR_ROWS(i, count) out[i] = values[order[i]];
}
KERNEL void gather_32(GLOBAL const u32 *values, GLOBAL const u32 *order, const u32 count, GLOBAL u32 *out) {
    FOR_ROWS(i, count) out[i] = values[order[i]];
}
KERNEL void gather_8(GLOBAL const u8 *values, GLOBAL const u32 *order, const u32 count, GLOBAL u8 *out) {
    FOR_ROWS(i, count) out[i] = values[order[i]];
}

// Groups as they are before their first row.
KERNEL void fill_groups(GLOBAL i64 *table, GLOBAL const i64 *group, const u32 width, const u32 numbers) {
    FOR_ROWS(i, numbers) table[i] = group[i % width];
}
