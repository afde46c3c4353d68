// What is the same for every pipeline. Each operator is a program: it comes with all lines that belong to no other one. Things
// are dealt out in shares of neighbours, one for each work-item, so that what keeps an order keeps it.
#define SHARE(count) \
    const u32 share = ((count) + (u32)ITEMS - 1) / (u32)ITEMS; \
    const u32 begin = min((u32)ITEM * share, (u32)(count)), end = min(begin + share, (u32)(count))
#define DIGITS 256u
#define DIGIT(key) ((u32)((key) >> shift) & (DIGITS - 1))

// Prefix sums in three kernels: the sum of each share, the sums before each share (by one work-item), and the sums before
// each number. A few numbers need the second only.
KERNEL void sum_shares(GLOBAL const u32 *numbers, const u32 count, GLOBAL u32 *sums) {
    SHARE(count);
    u64 sum = 0;
    for (u32 i = begin; i < end; i++) sum += numbers[i];
    sums[ITEM] = SATURATED(sum);
}
KERNEL void scan(GLOBAL u32 *numbers, const u32 count, GLOBAL u32 *total) {
    u64 before = 0;
    for (u32 i = 0; i < count; i++) {
        const u32 number = numbers[i];
        numbers[i] = (u32)before;
        before += number;
    }
    *total = SATURATED(before);
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
// The same by one work-item, for a few rows; `order` has the result.
KERNEL void sort_alone(GLOBAL const u64 *keys, GLOBAL u32 *order, const u32 count, GLOBAL u32 *moved) {
    u32 places[DIGITS];
    u64 differing = 0;
    for (u32 i = 0; i < count; i++) differing |= keys[i] ^ keys[0];
    for (u32 shift = 0; shift < 64; shift += 8) {
        if (!DIGIT(differing)) continue;
        for (u32 digit = 0; digit < DIGITS; digit++) places[digit] = 0;
        for (u32 i = 0; i < count; i++) places[DIGIT(keys[i])]++;
        u32 before = 0;
        for (u32 digit = 0; digit < DIGITS; digit++) {
            const u32 rows = places[digit];
            places[digit] = before;
            before += rows;
        }
        for (u32 i = 0; i < count; i++) moved[places[DIGIT(keys[order[i]])]++] = order[i];
        for (u32 i = 0; i < count; i++) order[i] = moved[i];
    }
}

// Values in the order of row numbers.
KERNEL void gather_128(GLOBAL const wide *values, GLOBAL const u32 *order, const u32 count, GLOBAL wide *out) {
    FOR_ROWS(i, count) out[i] = values[order[i]];
}
KERNEL void gather_64(GLOBAL const u64 *values, GLOBAL const u32 *order, const u32 count, GLOBAL u64 *out) {
    FOR_ROWS(i, count) out[i] = values[order[i]];
}
KERNEL void gather_32(GLOBAL const u32 *values, GLOBAL const u32 *order, const u32 count, GLOBAL u32 *out) {
    FOR_ROWS(i, count) out[i] = values[order[i]];
}
KERNEL void gather_8(GLOBAL const u8 *values, GLOBAL const u32 *order, const u32 count, GLOBAL u8 *out) {
    FOR_ROWS(i, count) out[i] = values[order[i]];
}

// Where the rows of each group begin and end among all, which are in the order of their groups.
KERNEL void find_segments(
    GLOBAL const u64 *groups, GLOBAL const u32 *order, const u32 count, GLOBAL u32 *starts, GLOBAL u32 *ends)
{
    FOR_ROWS(i, count) {
        const u64 group = groups[order[i]];
        if (i == 0 || groups[order[i - 1]] != group) starts[group] = i;
        if (i + 1 == count || groups[order[i + 1]] != group) ends[group] = i + 1;
    }
}

// Groups as they are before their first row.
KERNEL void fill_groups(GLOBAL i64 *table, GLOBAL const i64 *group, const u32 width, const u32 numbers) {
    FOR_ROWS(i, numbers) table[i] = group[i % width];
}

// Builds by an integer key that has a place for every value from the smallest on. `nulls` may be absent.
#define PRESENT(nulls, i) (!(nulls) || !(nulls)[i])
#define NO_ENTRY 0xffffffffu
// The smallest and largest number of each share, and how many are not null.
KERNEL void find_range(GLOBAL const i64 *values, GLOBAL const u8 *nulls, const u32 count, GLOBAL i64 *out) {
    SHARE(count);
    i64 least = 0x7fffffffffffffffL, most = -0x7fffffffffffffffL - 1, present = 0;
    for (u32 i = begin; i < end; i++) {
        if (!PRESENT(nulls, i)) continue;
        const i64 value = values[i];
        least = value < least ? value : least;
        most = value > most ? value : most;
        present++;
    }
    out[3 * ITEM] = least;
    out[3 * ITEM + 1] = most;
    out[3 * ITEM + 2] = present;
}
// The bit of each key; tells whether a key repeats.
KERNEL void set_bits(
    GLOBAL const i64 *keys, GLOBAL const u8 *nulls, const u32 count, const i64 min_key, GLOBAL u32 *bits,
    GLOBAL i32 *repeats)
{
    FOR_ROWS(i, count) {
        if (!PRESENT(nulls, i)) continue;
        const u32 place = (u32)((u64)keys[i] - (u64)min_key), bit = 1u << (place & 31);
        if (ATOMIC_OR_32(bits + (place >> 5), bit) & bit) RAISE(repeats);
    }
}
// How often each key occurs.
KERNEL void count_places(
    GLOBAL const i64 *keys, GLOBAL const u8 *nulls, const u32 count, const i64 min_key, GLOBAL u32 *counts)
{
    FOR_ROWS(i, count) {
        if (PRESENT(nulls, i)) ATOMIC_ADD_32(counts + (u32)((u64)keys[i] - (u64)min_key), 1);
    }
}
// The entry of each row: its key's place, or, where keys repeat, the next one of its place.
KERNEL void find_entries(
    GLOBAL const i64 *keys, GLOBAL const u8 *nulls, const u32 count, const i64 min_key, GLOBAL u32 *next,
    GLOBAL u32 *entries)
{
    FOR_ROWS(i, count) {
        const u32 place = PRESENT(nulls, i) ? (u32)((u64)keys[i] - (u64)min_key) : NO_ENTRY;
        entries[i] = place == NO_ENTRY || !next ? place : ATOMIC_ADD_32(next + place, 1);
    }
}

// Builds by keys packed into 64 bits: rows are sorted by bucket, then key. Rows without a key have a bucket behind all.
// Puts one key into the packed ones; `dropped` tells rows with a null key, unless nulls match.
KERNEL void pack_keys(
    GLOBAL const i64 *keys, GLOBAL const u8 *nulls, const u32 count, const i64 min_key, const u32 shift,
    const u32 nulls_match, GLOBAL u64 *packed, GLOBAL u8 *dropped)
{
    FOR_ROWS(i, count) {
        if (PRESENT(nulls, i)) packed[i] |= ((u64)keys[i] - (u64)min_key + 1) << shift;
        else if (!nulls_match) dropped[i] = 1;
    }
}
KERNEL void find_buckets(
    GLOBAL const u64 *packed, GLOBAL const u8 *dropped, const u32 count, const u32 bits, GLOBAL u64 *buckets,
    GLOBAL u32 *counts)
{
    FOR_ROWS(i, count) {
        const u32 bucket = dropped[i] ? 1u << bits : bits == 0 ? 0 : (u32)(HASH(packed[i]) >> (64 - bits));
        buckets[i] = bucket;
        if (!dropped[i]) ATOMIC_ADD_32(counts + bucket, 1);
    }
}
// The place of each row in an order.
KERNEL void invert(GLOBAL const u32 *order, const u32 count, GLOBAL u32 *places) {
    FOR_ROWS(i, count) places[order[i]] = i;
}

// Numbers of rows as codes of their entries.
#define SCATTER(name, type) \
    KERNEL void name(GLOBAL const i64 *values, GLOBAL const u32 *entries, const u32 count, const i64 base, \
        GLOBAL type *out) \
    { \
        FOR_ROWS(i, count) if (entries[i] != NO_ENTRY) out[entries[i]] = (type)((u64)values[i] - (u64)base); \
    }
SCATTER(scatter_8, u8)
SCATTER(scatter_16, u16)
SCATTER(scatter_32, u32)
SCATTER(scatter_64, u64)
// Entries whose row is null are not valid.
KERNEL void clear_bits(GLOBAL const u8 *nulls, GLOBAL const u32 *entries, const u32 count, GLOBAL u32 *bits) {
    FOR_ROWS(i, count) {
        if (nulls[i] && entries[i] != NO_ENTRY) ATOMIC_AND_32(bits + (entries[i] >> 5), ~(1u << (entries[i] & 31)));
    }
}

// Numbers as codes of a column, and its validity: null rows have code 0.
#define NARROW(name, type) \
    KERNEL void name(GLOBAL const i64 *values, GLOBAL const u8 *nulls, const u32 count, const i64 base, GLOBAL type *out) { \
        FOR_ROWS(i, count) out[i] = PRESENT(nulls, i) ? (type)((u64)values[i] - (u64)base) : 0; \
    }
NARROW(narrow_8, u8)
NARROW(narrow_16, u16)
NARROW(narrow_32, u32)
NARROW(narrow_64, u64)
KERNEL void pack_validity(GLOBAL const u8 *nulls, const u32 count, GLOBAL u64 *words) {
    FOR_ROWS(word, (count + 63) / 64) {
        u64 valid = 0;
        for (u32 bit = 0; bit < 64 && word * 64 + bit < count; bit++) valid |= (u64)!nulls[word * 64 + bit] << bit;
        words[word] = valid;
    }
}
