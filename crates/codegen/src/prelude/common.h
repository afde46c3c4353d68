// Shared by all targets, behind their preludes.
#define VALID(words, row) ((int)((words)[(row) >> 6] >> ((row) & 63)) & 1)
#define IN_SET(words, bit) ((int)((words)[(bit) >> 5] >> ((bit) & 31)) & 1)
// A read that is noted: sectors have 32 bytes.
#define READ(column, row, touched) ((touched)[((u64)(row) * sizeof(*(column))) >> 5] = 1, (column)[row])
// Tells whether a sum, difference or product of two 64-bit integers left them.
#define SUM_LEFT(a, b, r) ((((a) ^ (r)) & ((b) ^ (r))) < 0)
#define DIFFERENCE_LEFT(a, b, r) ((((a) ^ (b)) & ((a) ^ (r))) < 0)
#define PRODUCT_LEFT(a, b, r) (HIGH_PRODUCT(a, b) != ((r) >> 63))
#define WRAP_ADD(a, b) ((i64)((u64)(a) + (u64)(b)))
#define WRAP_SUBTRACT(a, b) ((i64)((u64)(a) - (u64)(b)))
#define WRAP_MULTIPLY(a, b) ((i64)((u64)(a) * (u64)(b)))
// A float's place in total order: −NaN < −∞ < … < −0 < 0 < … < ∞ < NaN.
#define FLOAT_ORDER(value) ORDER_OF_BITS(AS_I64(value))
#define ORDER_OF_BITS(bits) ((bits) ^ (i64)((u64)((bits) >> 63) >> 1))

#define HASH(key) (((key) ^ ((key) >> 32)) * 0x9e3779b97f4a7c15UL)
#ifdef ATOM64
// The place of a number in a hash table of a power of two of places, which it takes if it is new; beyond the table if it
// is too crowded.
#define NO_NUMBER 0xffffffffffffffffUL
#define MOST_TRIES 128u
FUNCTION u32 group_place(GLOBAL u64 *numbers, u32 mask, u64 number) {
    u32 place = (u32)(HASH(number) >> 32) & mask;
    for (u32 tries = 0; tries < MOST_TRIES; tries++) {
        const u64 seen = EXCHANGE_IF(numbers + place, NO_NUMBER, number);
        if (seen == NO_NUMBER || seen == number) return place;
        place = (place + 1) & mask;
    }
    return 0xffffffffu;
}
#endif

// Entries of a key in a hashed build: its bucket's are neighbours, in the order of their keys.
FUNCTION u32 find_hashed(GLOBAL const u32 *starts, GLOBAL const u64 *keys, u32 bits, u64 key, u32 *end) {
    const u32 bucket = bits == 0 ? 0 : (u32)(HASH(key) >> (64 - bits)), last = starts[bucket + 1];
    u32 entry = starts[bucket];
    while (entry < last && keys[entry] < key) entry++;
    const u32 first = entry;
    while (entry < last && keys[entry] == key) entry++;
    *end = entry;
    return first;
}

// The civil date of a day since 1970-01-01, counted in eras of 400 years of 146097 days that begin on the first of March.
FUNCTION i64 era_of(i64 day) { return (day + 719468 - (day + 719468 < 0 ? 146096 : 0)) / 146097; }
FUNCTION i64 day_of_era(i64 day) { return day + 719468 - era_of(day) * 146097; }
FUNCTION i64 year_of_era(i64 doe) { return (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365; }
FUNCTION i64 day_of_year(i64 doe) {
    const i64 year = year_of_era(doe);
    return doe - (365 * year + year / 4 - year / 100);
}
FUNCTION i64 month_of(i64 day) {
    const i64 month = (5 * day_of_year(day_of_era(day)) + 2) / 153;
    return month < 10 ? month + 3 : month - 9;
}
FUNCTION i64 year_of(i64 day) { return year_of_era(day_of_era(day)) + era_of(day) * 400 + (month_of(day) <= 2); }
FUNCTION i64 day_of_month(i64 day) {
    const i64 doy = day_of_year(day_of_era(day));
    return doy - (153 * ((5 * doy + 2) / 153) + 2) / 5 + 1;
}
