// `strftime` as glibc has it. The one of the C library here knows fewer directives, and writes nothing at all if a format has
// another. CPython calls this one: see patches/dates.patch.
#define _GNU_SOURCE // for tm_zone
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <wchar.h>
#include <wctype.h>

enum { MAX_TEXT = 256, MAX_WIDTH = 100000 };

#define KNOWN L"aAbBcCdDeFgGhHIjklmMnpPrRsStTuUVwWxXyYzZ%"
#define KNOWN_AFTER_E L"cCnpPrRstTuxXyYzZ%"
#define KNOWN_AFTER_O L"bBCdegGhHIjklmMnpPrRsStTuUVwWyzZ%"

// Directives that write a number: how many digits it has at least, and what fills it up.
static const struct number { wchar_t letter; uint8_t digits; wchar_t fill; } numbers[] = {
    { L'C', 1, L'0' }, { L'd', 2, L'0' }, { L'e', 2, L'_' }, { L'g', 2, L'0' }, { L'G', 1, L'0' }, { L'H', 2, L'0' },
    { L'I', 2, L'0' }, { L'j', 3, L'0' }, { L'k', 2, L'_' }, { L'l', 2, L'_' }, { L'm', 2, L'0' }, { L'M', 2, L'0' },
    { L'S', 2, L'0' }, { L'u', 1, L'0' }, { L'U', 2, L'0' }, { L'V', 2, L'0' }, { L'w', 1, L'0' }, { L'W', 2, L'0' },
    { L'y', 2, L'0' }, { L'Y', 1, L'0' }, { L'z', 4, L'0' },
};

struct output {
    wchar_t *at, *end;
    bool is_full;
};

static void put(struct output *out, wchar_t c) {
    if (out->at < out->end) *out->at++ = c;
    else out->is_full = true;
}

static void put_filled(struct output *out, const wchar_t *text, size_t length, size_t width, wchar_t fill) {
    for (size_t n = length; n < width; n++) put(out, fill == L'0' ? L'0' : L' ');
    for (size_t i = 0; i < length; i++) put(out, text[i]);
}

// A number with its sign. `fill` is that of the directive's flags, or 0.
static void put_number(struct output *out, const struct number *number, wchar_t *text, size_t length, size_t width,
                       wchar_t fill) {
    size_t least = number->digits > width ? number->digits : width, from = 0;
    wchar_t sign = length && (text[0] == L'-' || text[0] == L'+') ? text[from++] : 0;
    while (from + 1 < length && (text[from] == L'0' || text[from] == L' ')) from++;
    if (number->letter == L'z' && sign) {
        // Of a time zone, the sign is filled up on its own.
        put_filled(out, &sign, 1, width, fill);
        sign = 0;
    }
    wchar_t filled = fill ? fill : number->fill;
    if (filled == L'0') {
        if (sign) put(out, sign);
        put_filled(out, text + from, length - from, least - (sign && least), L'0');
    } else {
        if (sign) text[--from] = sign;
        put_filled(out, text + from, length - from, filled == L'_' ? least : width, L' ');
    }
}

// One directive, from behind its `%`. Returns where it ends.
static const wchar_t *directive(struct output *out, const wchar_t *f, const struct tm *tm) {
    const wchar_t *start = f - 1;
    wchar_t fill = 0;
    bool upper = false, changed = false;
    for (; *f && wcschr(L"_-0^#", *f); f++) {
        if (*f == L'^') upper = true;
        else if (*f == L'#') changed = true;
        else fill = *f;
    }
    size_t width = 0;
    for (; *f >= L'0' && *f <= L'9'; f++)
        if (width < MAX_WIDTH) width = width * 10 + (size_t)(*f - L'0');
    wchar_t modifier = *f == L'E' || *f == L'O' ? *f++ : 0;
    wchar_t letter = *f, text[MAX_TEXT];
    size_t length = 0;
    if (letter) f++;
    if (!letter || !wcschr(modifier == L'E' ? KNOWN_AFTER_E : modifier ? KNOWN_AFTER_O : KNOWN, letter)) {
        // What glibc does not know, it writes as it is: a `%` at the end, too.
        for (; start + length < f && length < MAX_TEXT; length++)
            text[length] = upper ? towupper(start[length]) : start[length];
        put_filled(out, text, length, width, fill);
        return f;
    }
    if (letter == L'z' && tm->tm_isdst < 0) return f;
    wchar_t alone[] = { L'%', letter == L'P' ? L'p' : letter == L'k' ? L'H' : letter == L'l' ? L'I' : letter, 0 };
    if (letter == L'Z') {
        // A time that comes from numbers alone has the name of the local zone.
        const char *name = tm->tm_zone ? tm->tm_zone : tm->tm_isdst < 0 ? "" : "UTC";
        for (; name[length] && length < MAX_TEXT; length++) text[length] = (unsigned char)name[length];
    } else {
        length = wcsftime(text, MAX_TEXT, alone, tm);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (numbers[i].letter != letter) continue;
        put_number(out, &numbers[i], text, length, width, fill);
        return f;
    }
    bool lower = letter == L'P' || (changed && (letter == L'p' || letter == L'Z'));
    upper |= changed && wcschr(L"aAbBh", letter);
    for (size_t i = 0; i < length; i++) text[i] = lower ? towlower(text[i]) : upper ? towupper(text[i]) : text[i];
    put_filled(out, text, length, width, fill);
    return f;
}

// The characters that it wrote, or 0 if `room` is not enough.
size_t dates_wcsftime(wchar_t *text, size_t room, const wchar_t *format, const struct tm *tm) {
    if (!room) return 0;
    struct output out = { text, text + room - 1, false };
    while (*format) {
        if (*format == L'%') format = directive(&out, format + 1, tm);
        else put(&out, *format++);
    }
    *out.at = 0;
    return out.is_full ? 0 : (size_t)(out.at - text);
}
