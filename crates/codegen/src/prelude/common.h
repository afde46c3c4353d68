// Shared by all targets, behind their preludes. A text says first which of the larger parts its kernel mentions: what is not read
// is compiled soonest.
#define VALID(words, row) ((int)((words)[(row) >> 6] >> ((row) & 63)) & 1)
#define IN_SET(words, bit) ((int)((words)[(bit) >> 5] >> ((bit) & 31)) & 1)
// A read that is noted: sectors have 32 bytes.
#define READ(column, row, touched) ((touched)[((u64)(row) * sizeof(*(column))) >> 5] = 1, (column)[row])
// Tells whether a sum, difference or product of two 64-bit integers left them.
#define SUM_LEFT(a, b, r) ((((a) ^ (r)) & ((b) ^ (r))) < 0)
#define DIFFERENCE_LEFT(a, b, r) ((((a) ^ (b)) & ((a) ^ (r))) < 0)
#define PRODUCT_LEFT(a, b, r) (HIGH_PRODUCT(a, b) != ((r) >> 63))
#define WRAP_ADD32(a, b) ((i32)((u32)(a) + (u32)(b)))
#define WRAP_SUBTRACT32(a, b) ((i32)((u32)(a) - (u32)(b)))
#define WRAP_MULTIPLY32(a, b) ((i32)((u32)(a) * (u32)(b)))
#define WRAP_ADD(a, b) ((i64)((u64)(a) + (u64)(b)))
#define WRAP_SUBTRACT(a, b) ((i64)((u64)(a) - (u64)(b)))
#define WRAP_MULTIPLY(a, b) ((i64)((u64)(a) * (u64)(b)))
// A float's place in total order: −NaN < −∞ < … < −0 < 0 < … < ∞ < NaN.
#define FLOAT_ORDER(value) ORDER_OF_BITS(AS_I64(value))
#define ORDER_OF_BITS(bits) ((bits) ^ (i64)((u64)((bits) >> 63) >> 1))

// A count in 32 bits; the largest stands for all that are larger.
#define SATURATED(count) ((u32)((count) > 0xffffffffUL ? 0xffffffffUL : (count)))
#define HASH(key) (((key) ^ ((key) >> 32)) * 0x9e3779b97f4a7c15UL)
// The place of a number in a hash table of a power of two of places, which it takes if it is new; beyond the table if it
// is too crowded.
#define NO_NUMBER 0xffffffffffffffffUL
#define MOST_TRIES 128u
#ifdef ATOM64
FUNCTION int takes_place(GLOBAL u64 *place, u64 number) {
    const u64 seen = EXCHANGE_IF(place, NO_NUMBER, number);
    return seen == NO_NUMBER || seen == number;
}
#else
// Two words of 31 bits, taken one after the other. A word that is set stays, so all rows of a group end at one place; a
// lower word may be that of one group and the higher one that of another, which then has the place.
FUNCTION int takes_word(GLOBAL u32 *place, u32 word) {
    const u32 seen = EXCHANGE_IF_32(place, 0xffffffffu, word);
    return seen == 0xffffffffu || seen == word;
}
FUNCTION int takes_place(GLOBAL u64 *place, u64 number) {
    GLOBAL u32 *const words = (GLOBAL u32 *)place;
    return takes_word(words, (u32)number & 0x7fffffffu) && takes_word(words + 1, (u32)(number >> 31));
}
#endif
#define NUMBER_OF_WORDS(words) ((words) >> 32 << 31 | ((words) & 0x7fffffffUL))
FUNCTION u32 group_place(GLOBAL u64 *numbers, u32 mask, u64 number) {
    u32 place = (u32)(HASH(number) >> 32) & mask;
    for (u32 tries = 0; tries < MOST_TRIES; tries++) {
        if (takes_place(numbers + place, number)) return place;
        place = (place + 1) & mask;
    }
    return 0xffffffffu;
}

#ifdef PARTITIONS
// The hash by which rows are divided: a part of the pipeline language.
FUNCTION u64 hash_mixed(u64 hash) {
    hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93UL;
    hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93UL;
    return hash ^ hash >> 32;
}
FUNCTION u64 hash_null(u64 hash) { return hash_mixed(hash ^ 0xa0761d6478bd642fUL); }
FUNCTION u64 hash_integer(u64 hash, i64 value) { return hash_mixed((hash << 5 | hash >> 59) ^ (u64)value); }
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

// Entries of a key among all in the order of their keys. The search gallops on from where the last one ended: rows in the
// same order merge with the entries, and others are found, too.
FUNCTION u32 find_sorted(GLOBAL const u64 *keys, u32 count, u64 key, u32 *cursor, u32 *end) {
    u32 low = *cursor, stride = 1;
    if (low > 0 && keys[low - 1] >= key) low = 0;
    u32 high = low;
    while (high < count && keys[high] < key) {
        low = high + 1;
        high = count - high > stride ? high + stride : count;
        stride *= 2;
    }
    while (low < high) {
        const u32 middle = low + (high - low) / 2;
        if (keys[middle] < key) low = middle + 1;
        else high = middle;
    }
    while (high < count && keys[high] == key) high++;
    *cursor = low;
    *end = high;
    return low;
}

// Division that has a result for every operand: that of rows which are null is never looked at.
FUNCTION i64 divide(i64 a, i64 b) { return b == 0 ? 0 : b == -1 ? WRAP_SUBTRACT(0, a) : a / b; }
FUNCTION i64 remainder_of(i64 a, i64 b) { return b == 0 || b == -1 ? 0 : a % b; }
// Division by a positive number, toward −∞, and what it leaves.
FUNCTION i64 floor_divide(i64 a, i64 b) { return a / b - (a % b < 0); }
FUNCTION i64 floor_remainder(i64 a, i64 b) { return a % b + (a % b < 0 ? b : 0); }
FUNCTION i64 floor_to(i64 a, i64 unit) { return a - floor_remainder(a, unit); }
FUNCTION i64 ceil_to(i64 a, i64 unit) { return -floor_to(-a, unit); }
// To the nearest, ties away from zero.
FUNCTION i64 divide_half_away(i64 a, i64 b) {
    const i64 rest = a % b, size = rest < 0 ? -rest : rest;
    return a / b + (size < b - size ? 0 : a < 0 ? -1 : 1);
}

#ifdef WIDE
// 128-bit integers in two's complement.
typedef struct {
    u64 low;
    i64 high;
} wide;
FUNCTION wide wide_from(i64 high, u64 low) {
    wide result;
    result.low = low;
    result.high = high;
    return result;
}
FUNCTION wide wide_of(i64 a) { return wide_from(a >> 63, (u64)a); }
FUNCTION wide wide_add(wide a, wide b) {
    const u64 low = a.low + b.low;
    return wide_from(WRAP_ADD(WRAP_ADD(a.high, b.high), low < a.low), low);
}
FUNCTION wide wide_subtract(wide a, wide b) {
    return wide_from(WRAP_SUBTRACT(WRAP_SUBTRACT(a.high, b.high), a.low < b.low), a.low - b.low);
}
// Sums of the halves of 64-bit integers, and of the four limbs of 128-bit ones: all but the highest are not negative.
FUNCTION wide wide_of_halves(i64 low, i64 high) {
    return wide_add(wide_of(low), wide_from(high >> 32, (u64)high << 32));
}
FUNCTION i64 highest_limb(i64 a, i64 b, i64 c, i64 d) { return d + ((c + ((b + (a >> 32)) >> 32)) >> 32); }
FUNCTION wide wide_of_limbs(i64 a, i64 b, i64 c, i64 d) {
    const i64 second = b + (a >> 32), third = c + (second >> 32);
    const u64 high = (u64)highest_limb(a, b, c, d) << 32 | (u32)third;
    return wide_from((i64)high, (u64)second << 32 | (u32)a);
}
FUNCTION int limbs_left(i64 a, i64 b, i64 c, i64 d) {
    const i64 highest = highest_limb(a, b, c, d);
    return highest != (i32)highest;
}
FUNCTION wide wide_negate(wide a) { return wide_subtract(wide_of(0), a); }
FUNCTION wide wide_size(wide a) { return a.high < 0 ? wide_negate(a) : a; }
FUNCTION wide wide_product(i64 a, i64 b) { return wide_from(HIGH_PRODUCT(a, b), (u64)a * (u64)b); }
FUNCTION wide wide_multiply(wide a, wide b) {
    const u64 high = HIGH_PRODUCT_U64(a.low, b.low) + a.low * (u64)b.high + (u64)a.high * b.low;
    return wide_from((i64)high, a.low * b.low);
}
FUNCTION int wide_order(wide a, wide b) {
    return a.high != b.high ? (a.high < b.high ? -1 : 1) : (a.low > b.low) - (a.low < b.low);
}
FUNCTION wide wide_least(wide a, wide b) { return wide_order(a, b) <= 0 ? a : b; }
FUNCTION wide wide_not(wide a) { return wide_from(~a.high, ~a.low); }
// Tells whether a sum, difference or product of 128-bit integers left them.
FUNCTION int wide_sum_left(wide a, wide b, wide r) { return SUM_LEFT(a.high, b.high, r.high); }
FUNCTION int wide_difference_left(wide a, wide b, wide r) { return DIFFERENCE_LEFT(a.high, b.high, r.high); }
FUNCTION int wide_product_left(wide a, wide b, wide r) {
    const wide x = wide_size(a), y = wide_size(b);
    // Magnitudes: one of them has no higher half, and its product with the other's leaves room for the carry.
    if (x.high != 0 && y.high != 0) return 1;
    const u64 cross = x.high != 0 ? (u64)x.high : (u64)y.high, by = x.high != 0 ? y.low : x.low;
    const u64 carry = HIGH_PRODUCT_U64(x.low, y.low), middle = cross * by;
    return HIGH_PRODUCT_U64(cross, by) != 0 || ((middle + carry) < carry) || (i64)(middle + carry) < 0;
}
// The quotient and remainder of magnitudes, one bit after the other where 64 bits are not enough; by 0, nothing.
FUNCTION wide wide_divide_sizes(wide a, wide b, wide *rest) {
    *rest = wide_of(0);
    if (b.low == 0 && b.high == 0) return wide_of(0);
    if (a.high == 0 && b.high == 0) {
        *rest = wide_from(0, a.low % b.low);
        return wide_from(0, a.low / b.low);
    }
    wide quotient = wide_of(0);
    for (int bit = 127; bit >= 0; bit--) {
        const u64 next = (bit >= 64 ? (u64)a.high >> (bit - 64) : a.low >> bit) & 1;
        *rest = wide_from((i64)((u64)rest->high << 1 | rest->low >> 63), rest->low << 1 | next);
        const int fits = wide_order(*rest, b) >= 0;
        if (fits) *rest = wide_subtract(*rest, b);
        quotient = wide_from((i64)((u64)quotient.high << 1 | quotient.low >> 63), quotient.low << 1 | (u64)fits);
    }
    return quotient;
}
FUNCTION wide wide_divide(wide a, wide b) {
    wide rest;
    const wide quotient = wide_divide_sizes(wide_size(a), wide_size(b), &rest);
    return (a.high < 0) != (b.high < 0) ? wide_negate(quotient) : quotient;
}
FUNCTION wide wide_remainder(wide a, wide b) {
    wide rest;
    wide_divide_sizes(wide_size(a), wide_size(b), &rest);
    return a.high < 0 ? wide_negate(rest) : rest;
}
FUNCTION wide wide_divide_half_away(wide a, wide b) {
    wide rest;
    wide quotient = wide_divide_sizes(wide_size(a), b, &rest);
    if (wide_order(rest, wide_subtract(b, rest)) >= 0) quotient = wide_add(quotient, wide_of(1));
    return a.high < 0 ? wide_negate(quotient) : quotient;
}
FUNCTION wide wide_floor_to(wide a, wide unit) {
    const wide rest = wide_remainder(a, unit);
    const wide toward_zero = wide_subtract(a, rest);
    return rest.high < 0 ? wide_subtract(toward_zero, unit) : toward_zero;
}
FUNCTION wide wide_ceil_to(wide a, wide unit) { return wide_negate(wide_floor_to(wide_negate(a), unit)); }
#ifdef PARTITIONS
FUNCTION u64 hash_wide(u64 hash, wide a) {
    const u64 low = hash_integer(hash, (i64)a.low);
    return a.high == (i64)a.low >> 63 ? low : hash_integer(low, a.high);
}
#endif
#define KEEP_WIDE(at_low, at_high, value, sign) \
    if (wide_order(value, wide_from(*(at_high), (u64)*(at_low))) sign 0) { \
        *(at_low) = (i64)(value).low; \
        *(at_high) = (value).high; \
    }
#ifdef FP64
// The nearest float: 64 leading bits, the last of which tells whether more follow, are rounded once.
FUNCTION f64 wide_to_f64(wide a) {
    wide size = wide_size(a);
    f64 unit = 18446744073709551616.0;
    if (size.high == 0) return a.high < 0 ? -(f64)size.low : (f64)size.low;
    while (size.high > 0) {
        size = wide_from((i64)((u64)size.high << 1 | size.low >> 63), size.low << 1);
        unit *= 0.5;
    }
    const f64 leading = (f64)((u64)size.high | (u64)(size.low != 0)) * unit;
    return a.high < 0 ? -leading : leading;
}
// A whole float below 2¹²⁷ in magnitude.
FUNCTION wide wide_from_f64(f64 value) {
    const f64 size = fabs(value), high = floor(size / 18446744073709551616.0);
    const wide result = wide_from((i64)high, (u64)(size - high * 18446744073709551616.0));
    return value < 0 ? wide_negate(result) : result;
}
#endif
#endif
#ifdef FP64
// The center of a group's moments: the first value to come. −0 stands for none, so that no center is −0.
#define NO_CENTER (-0x7fffffffffffffffL - 1)
#define REGISTER_CENTER(center, value) AS_F64((center) == NO_CENTER ? (center) = AS_I64((value) + 0.0) : (center))
#ifdef ATOM64
FUNCTION f64 atomic_center(GLOBAL i64 *place, f64 value) {
    const i64 own = AS_I64(value + 0.0), seen = (i64)EXCHANGE_IF((GLOBAL u64 *)place, (u64)NO_CENTER, (u64)own);
    return AS_F64(seen == NO_CENTER ? own : seen);
}
#define ATOMIC_CENTER(place, value) atomic_center(place, value)
#endif
// The count of some floats, their mean and the squared differences from it.
typedef struct {
    f64 count, mean, squares;
} moments;
FUNCTION moments moments_from(f64 count, f64 mean, f64 squares) {
    moments result;
    result.count = count;
    result.mean = mean;
    result.squares = squares;
    return result;
}
FUNCTION moments moments_merge(moments a, moments b) {
    if (b.count == 0) return a;
    if (a.count == 0) return b;
    const f64 count = a.count + b.count, delta = b.mean - a.mean;
    const f64 mean = (a.count * a.mean + b.count * b.mean) / count;
    return moments_from(count, mean, a.squares + (b.squares + delta * delta * a.count * b.count / count));
}
#endif

#ifdef TEXT
// Text, or bytes, where it lies.
typedef struct {
    GLOBAL const u8 *bytes;
    u64 length;
} text;
FUNCTION text text_from(GLOBAL const u8 *bytes, u64 length) {
    text result;
    result.bytes = bytes;
    result.length = length;
    return result;
}
FUNCTION text no_text() { return text_from(0, 0); }
FUNCTION text text_at(GLOBAL const u64 *offsets, GLOBAL const u8 *bytes, u32 row) {
    return text_from(bytes + offsets[row], offsets[row + 1] - offsets[row]);
}
FUNCTION int text_order(text a, text b) {
    for (u64 i = 0; i < a.length && i < b.length; i++)
        if (a.bytes[i] != b.bytes[i]) return a.bytes[i] < b.bytes[i] ? -1 : 1;
    return (a.length > b.length) - (a.length < b.length);
}
// Eight bytes of a text, the first the most significant, zeros behind its end: words, then lengths, compare as texts do.
FUNCTION u64 text_word(text a, u64 from) {
    u64 word = 0;
    for (u64 i = from; i < from + 8; i++) word = word << 8 | (u64)(i < a.length ? a.bytes[i] : 0);
    return word;
}
#ifdef PARTITIONS
FUNCTION u64 hash_text(u64 hash, text a) {
    hash = hash_integer(hash, (i64)a.length);
    for (u64 from = 0; from + 8 <= a.length; from += 8) {
        u64 word = 0;
        for (u64 i = 0; i < 8; i++) word |= (u64)a.bytes[from + i] << (8 * i);
        hash = hash_integer(hash, (i64)word);
    }
    u64 last = 0;
    for (u64 i = a.length / 8 * 8; i < a.length; i++) last |= (u64)a.bytes[i] << (8 * (i % 8));
    return hash_integer(hash, (i64)last);
}
#endif
FUNCTION int text_equal(text a, text b) { return a.length == b.length && text_order(a, b) == 0; }
// Bytes that continue a character of UTF-8 are 10xxxxxx.
FUNCTION u64 text_characters(text a) {
    u64 count = 0;
    for (u64 i = 0; i < a.length; i++) count += (a.bytes[i] & 0xc0) != 0x80;
    return count;
}
FUNCTION u64 next_character(text a, u64 at) {
    do at++;
    while (at < a.length && (a.bytes[at] & 0xc0) == 0x80);
    return at;
}
// Where a character begins, counted from 0; where the text ends, behind the last.
FUNCTION u64 character_begins(text a, i64 character) {
    u64 at = 0;
    for (; character > 0 && at < a.length; character--) at = next_character(a, at);
    return at;
}
FUNCTION text text_between(text a, i64 from, i64 to) {
    const u64 begin = character_begins(a, from), end = character_begins(a, to);
    return text_from(a.bytes + begin, end - begin);
}
// Where a text lies among some bytes: how long it is, where it begins.
#define SLICE(bytes_of_all, a) ((a).length << 40 | (u64)((a).bytes - (bytes_of_all)))
#ifdef ATOM64
// The place of a text in a hash table of slices of one memory, which it takes if it is new; beyond the table if it is too
// crowded. What places stand for is never written, so that texts are compared where they lie.
FUNCTION u32 text_place(GLOBAL u64 *texts, u32 mask, GLOBAL const u8 *bytes, text a) {
    u64 hash = a.length;
    for (u64 i = 0; i < a.length; i++) hash = (hash ^ a.bytes[i]) * 0x100000001b3UL;
    u32 place = (u32)(HASH(hash) >> 32) & mask;
    for (u32 tries = 0; tries < MOST_TRIES; tries++) {
        const u64 seen = EXCHANGE_IF(texts + place, NO_NUMBER, SLICE(bytes, a));
        if (seen == NO_NUMBER) return place;
        if (text_equal(a, text_from(bytes + (seen & 0xffffffffffUL), seen >> 40))) return place;
        place = (place + 1) & mask;
    }
    return 0xffffffffu;
}
#endif
// A pattern of bytes, 256 for any character and 257 for any text: after the last of those, what follows is tried further on.
FUNCTION int text_like(text a, GLOBAL const u16 *pattern, u32 length) {
    u64 at = 0, again_at = 0;
    u32 code = 0, again = length + 1;
    while (at < a.length) {
        if (code < length && pattern[code] == 257) {
            again = ++code;
            again_at = at;
        } else if (code < length && pattern[code] == 256) {
            at = next_character(a, at);
            code++;
        } else if (code < length && pattern[code] == a.bytes[at]) {
            at++;
            code++;
        } else if (again <= length) {
            at = again_at = next_character(a, again_at);
            code = again;
        } else {
            return 0;
        }
    }
    while (code < length && pattern[code] == 257) code++;
    return code == length;
}
#endif

#ifdef DATES
// The civil date of a day since 1970-01-01, counted in eras of 400 years of 146097 days that begin on the first of March.
FUNCTION i32 era_of(i32 day) { return (day + 719468 - (day + 719468 < 0 ? 146096 : 0)) / 146097; }
FUNCTION i32 day_of_era(i32 day) { return day + 719468 - era_of(day) * 146097; }
FUNCTION i32 year_of_era(i32 doe) { return (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365; }
FUNCTION i32 day_from_march(i32 doe) {
    const i32 year = year_of_era(doe);
    return doe - (365 * year + year / 4 - year / 100);
}
FUNCTION i32 month_of(i32 day) {
    const i32 month = (5 * day_from_march(day_of_era(day)) + 2) / 153;
    return month < 10 ? month + 3 : month - 9;
}
FUNCTION i32 quarter_of(i32 day) { return (month_of(day) + 2) / 3; }
FUNCTION i32 year_of(i32 day) { return year_of_era(day_of_era(day)) + era_of(day) * 400 + (month_of(day) <= 2); }
FUNCTION i32 day_of_month(i32 day) {
    const i32 from_march = day_from_march(day_of_era(day));
    return from_march - (153 * ((5 * from_march + 2) / 153) + 2) / 5 + 1;
}
FUNCTION i32 day_of_week(i32 day) { return (i32)floor_remainder((i64)day + 4, 7); }
FUNCTION i32 start_of_week(i32 day) { return day - (i32)floor_remainder((i64)day + 3, 7); }
FUNCTION i32 start_of_month(i32 day) { return day - day_of_month(day) + 1; }
// The day of the first of a month, from 1 to 12, of a year.
FUNCTION i32 first_of(i32 year, i32 month) {
    const i32 from_march = year - (month <= 2), era = (i32)floor_divide(from_march, 400);
    const i32 year_of_era = from_march - era * 400, month_from_march = month > 2 ? month - 3 : month + 9;
    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + (153 * month_from_march + 2) / 5 - 719468;
}
FUNCTION i32 add_months(i32 day, i32 months) {
    const i32 month = year_of(day) * 12 + month_of(day) - 1 + months, year = (i32)floor_divide(month, 12);
    const i32 next = (i32)floor_divide(month + 1, 12), first = first_of(year, month - year * 12 + 1);
    const i32 last = first_of(next, month + 1 - next * 12 + 1) - 1, same = first + day_of_month(day) - 1;
    return same < last ? same : last;
}
FUNCTION i32 start_of_quarter(i32 day) { return first_of(year_of(day), (month_of(day) - 1) / 3 * 3 + 1); }
FUNCTION i32 start_of_year(i32 day) { return first_of(year_of(day), 1); }
FUNCTION i32 day_of_year(i32 day) { return day - start_of_year(day) + 1; }
// Weeks start on Monday, and the first of a year is the one with its first Thursday.
FUNCTION i32 week_of(i32 day) { return (day_of_year(start_of_week(day) + 3) - 1) / 7 + 1; }
#endif
