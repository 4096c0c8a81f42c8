#include "cli/when.h"

#include <stdio.h>

#include "cli/args.h"

#define DAY_MS 86400000
#define YEAR_0_MS (-62167219200000)
#define YEAR_9999_MS 253402300799999

/* Days since 1970 of a date of the Gregorian calendar. Years begin in March here, so that the leap
 * day is their last one, and are counted in eras of 400. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t of_era = y - era * 400;
    int64_t of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;

    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/* The inverse. */
static void date_of(int64_t days, int *year, int *month, int *day)
{
    int64_t z = days + 719468;
    int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    int64_t of_era = z - era * 146097;
    int64_t y = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * y + y / 4 - y / 100);
    int64_t m = (5 * of_year + 2) / 153;

    *day = (int)(of_year - (153 * m + 2) / 5 + 1);
    *month = (int)(m < 10 ? m + 3 : m - 9);
    *year = (int)(y + era * 400 + (*month <= 2));
}

const char *weir__when_text(int64_t unix_ms, char out[WEIR__WHEN_BYTES])
{
    int year, month, day, of_day;
    int64_t days;

    if (unix_ms < YEAR_0_MS) unix_ms = YEAR_0_MS;
    if (unix_ms > YEAR_9999_MS) unix_ms = YEAR_9999_MS;
    days = unix_ms / DAY_MS - (unix_ms % DAY_MS < 0);
    of_day = (int)(unix_ms - days * DAY_MS);
    date_of(days, &year, &month, &day);
    snprintf(out, WEIR__WHEN_BYTES, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ", (unsigned)year % 10000,
             (unsigned)month % 100, (unsigned)day % 100, (unsigned)of_day / 3600000 % 100,
             (unsigned)of_day / 60000 % 60, (unsigned)of_day / 1000 % 60, (unsigned)of_day % 1000);
    return out;
}

/* Exactly `digits` digits with a value of low to high, after `lead` when that is not 0. */
static bool take(const char **at, char lead, int digits, int low, int high, int *out)
{
    const char *p = *at;

    if (lead && *p++ != lead) return false;
    for (*out = 0; digits > 0; digits--, p++) {
        if (*p < '0' || *p > '9') return false;
        *out = *out * 10 + (*p - '0');
    }
    if (*out < low || *out > high) return false;
    *at = p;
    return true;
}

/* ".5", ".125", ".123456": digits beyond milliseconds are cut. */
static bool take_fraction(const char **at, int *out_ms)
{
    int unit = 100;

    *out_ms = 0;
    if (**at != '.') return true;
    if (*++*at < '0' || **at > '9') return false;
    for (; **at >= '0' && **at <= '9'; ++*at, unit /= 10) *out_ms += (**at - '0') * unit;
    return true;
}

static bool take_zone(const char **at, int64_t *out_ms)
{
    int sign = **at == '-' ? -1 : 1, hours, minutes;

    *out_ms = 0;
    if (**at == '\0') return true;
    if (**at == 'Z') return *++*at == '\0';
    if (**at != '+' && **at != '-') return false;
    ++*at;
    if (!take(at, 0, 2, 0, 23, &hours) || !take(at, ':', 2, 0, 59, &minutes)) return false;
    *out_ms = INT64_C(60000) * sign * (hours * 60 + minutes);
    return **at == '\0';
}

static int days_in(int year, int month)
{
    int64_t next = month == 12 ? days_of(year + 1, 1, 1) : days_of(year, month + 1, 1);

    return (int)(next - days_of(year, month, 1));
}

bool weir__when_parse(const char *text, int64_t *out_unix_ms)
{
    int year, month, day, hour = 0, minute = 0, second = 0, ms = 0;
    int64_t zone = 0;
    uint64_t number;

    if (weir__args_number(text, &number)) {
        *out_unix_ms = (int64_t)number;
        return true;
    }
    if (!take(&text, 0, 4, 0, 9999, &year) || !take(&text, '-', 2, 1, 12, &month) ||
        !take(&text, '-', 2, 1, days_in(year, month), &day))
        return false;
    if (*text == 'T') {
        if (!take(&text, 'T', 2, 0, 23, &hour) || !take(&text, ':', 2, 0, 59, &minute))
            return false;
        if (*text == ':' && (!take(&text, ':', 2, 0, 59, &second) || !take_fraction(&text, &ms)))
            return false;
    }
    if (!take_zone(&text, &zone)) return false;
    *out_unix_ms = days_of(year, month, day) * DAY_MS +
                   ((hour * 60 + minute) * 60 + second) * INT64_C(1000) + ms - zone;
    return true;
}
