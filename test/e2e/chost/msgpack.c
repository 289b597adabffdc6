/* The chunk format: log events in the layout that Fluent Bit 5.1.1 hands out,
 * [[time, {metadata}], {body}] with time as extension type 0. */

#include "host.h"

#include <time.h>

static void be16(struct buf *b, uint16_t v)
{
	unsigned char c[2] = { (unsigned char)(v >> 8), (unsigned char)v };

	buf_add(b, c, sizeof c);
}

static void be32(struct buf *b, uint32_t v)
{
	be16(b, (uint16_t)(v >> 16));
	be16(b, (uint16_t)v);
}

static void be64(struct buf *b, uint64_t v)
{
	be32(b, (uint32_t)(v >> 32));
	be32(b, (uint32_t)v);
}

static void add_uint(struct buf *b, uint64_t v)
{
	if (v < 0x80) {
		buf_byte(b, (unsigned char)v);
	} else if (v <= UINT8_MAX) {
		buf_byte(b, 0xcc);
		buf_byte(b, (unsigned char)v);
	} else if (v <= UINT16_MAX) {
		buf_byte(b, 0xcd);
		be16(b, (uint16_t)v);
	} else if (v <= UINT32_MAX) {
		buf_byte(b, 0xce);
		be32(b, (uint32_t)v);
	} else {
		buf_byte(b, 0xcf);
		be64(b, v);
	}
}

static void add_int(struct buf *b, int64_t v)
{
	if (v >= 0) {
		add_uint(b, (uint64_t)v);
	} else if (v >= -32) {
		buf_byte(b, (unsigned char)v);
	} else {
		buf_byte(b, 0xd3);
		be64(b, (uint64_t)v);
	}
}

static void add_str_head(struct buf *b, size_t len)
{
	if (len < 32) {
		buf_byte(b, (unsigned char)(0xa0 | len));
	} else if (len <= UINT8_MAX) {
		buf_byte(b, 0xd9);
		buf_byte(b, (unsigned char)len);
	} else if (len <= UINT16_MAX) {
		buf_byte(b, 0xda);
		be16(b, (uint16_t)len);
	} else {
		buf_byte(b, 0xdb);
		be32(b, (uint32_t)len);
	}
}

static void add_str(struct buf *b, const char *s)
{
	size_t len = strlen(s);

	add_str_head(b, len);
	buf_add(b, s, len);
}

static void add_map_head(struct buf *b, size_t n)
{
	if (n < 16) {
		buf_byte(b, (unsigned char)(0x80 | n));
	} else {
		buf_byte(b, 0xde);
		be16(b, (uint16_t)n);
	}
}

/* The text of the log field depends on the number and the size alone, so that a consumer
 * can check every byte of what arrives. */
static void add_log_text(struct buf *b, uint64_t seq, size_t size)
{
	static const char filler[] = "abcdefghijklmnopqrstuvwxyz0123456789 ";
	char head[40];
	int n = snprintf(head, sizeof head, "record %llu ", (unsigned long long)seq);
	size_t have = (size_t)n < size ? (size_t)n : size;

	add_str_head(b, size);
	buf_add(b, head, have);
	while (have < size) {
		size_t step = sizeof filler - 1 < size - have ? sizeof filler - 1 : size - have;
		buf_add(b, filler, step);
		have += step;
	}
}

static void add_field(struct buf *b, const struct field *f)
{
	int64_t num;

	add_str(b, f->key);
	if (!f->quoted && parse_int(f->text, &num))
		add_int(b, num);
	else if (!f->quoted && strcmp(f->text, "true") == 0)
		buf_byte(b, 0xc3);
	else if (!f->quoted && strcmp(f->text, "false") == 0)
		buf_byte(b, 0xc2);
	else if (!f->quoted && strcmp(f->text, "null") == 0)
		buf_byte(b, 0xc0);
	else
		add_str(b, f->text);
}

void mp_record(struct buf *b, uint64_t seq, size_t size, const struct field *fields)
{
	struct timespec ts;
	size_t n = 2;

	clock_gettime(CLOCK_REALTIME, &ts);
	buf_add(b, "\x92\x92\xd7\x00", 4);
	be32(b, (uint32_t)ts.tv_sec);
	be32(b, (uint32_t)ts.tv_nsec);
	buf_byte(b, 0x80);
	for (const struct field *f = fields; f != NULL; f = f->next)
		n++;
	add_map_head(b, n);
	add_str(b, "seq");
	add_uint(b, seq);
	add_str(b, "log");
	add_log_text(b, seq, size);
	for (const struct field *f = fields; f != NULL; f = f->next)
		add_field(b, f);
}

static bool big_endian(const unsigned char *p, size_t len, size_t off, size_t n, uint64_t *v)
{
	if (len - off < n)
		return false;
	*v = 0;
	for (size_t i = 0; i < n; i++)
		*v = *v << 8 | p[off + i];
	return true;
}

/* head reads one type byte and its length bytes. skip gets the bytes of the value itself,
 * items the number of objects that follow it and belong to it. */
static bool head(const unsigned char *p, size_t len, size_t *off, uint64_t *skip, uint64_t *items)
{
	/* for 0xc0 to 0xdf: size of the length field, fixed bytes, and whether the length
	 * counts items (1) or pairs (2) instead of bytes (0) */
	static const struct { unsigned char width, fixed, unit; } types[32] = {
		{ 0, 0, 0 }, { 0, 0, 0 }, { 0, 0, 0 }, { 0, 0, 0 },     /* nil, bad, bools */
		{ 1, 0, 0 }, { 2, 0, 0 }, { 4, 0, 0 },                  /* bin */
		{ 1, 1, 0 }, { 2, 1, 0 }, { 4, 1, 0 },                  /* ext */
		{ 0, 4, 0 }, { 0, 8, 0 },                               /* float */
		{ 0, 1, 0 }, { 0, 2, 0 }, { 0, 4, 0 }, { 0, 8, 0 },     /* uint */
		{ 0, 1, 0 }, { 0, 2, 0 }, { 0, 4, 0 }, { 0, 8, 0 },     /* int */
		{ 0, 2, 0 }, { 0, 3, 0 }, { 0, 5, 0 }, { 0, 9, 0 }, { 0, 17, 0 }, /* fixext */
		{ 1, 0, 0 }, { 2, 0, 0 }, { 4, 0, 0 },                  /* str */
		{ 2, 0, 1 }, { 4, 0, 1 }, { 2, 0, 2 }, { 4, 0, 2 },     /* array, map */
	};
	unsigned char c = p[(*off)++];
	uint64_t n = 0;

	*skip = *items = 0;
	if (c < 0x80 || c >= 0xe0)
		return true;
	if (c < 0xa0) {
		*items = (c & 0x0f) * (c < 0x90 ? 2u : 1u);
		return true;
	}
	if (c < 0xc0) {
		*skip = c & 0x1f;
		return true;
	}
	if (c == 0xc1)
		return false;
	if (!big_endian(p, len, *off, types[c - 0xc0].width, &n))
		return false;
	*off += types[c - 0xc0].width;
	*skip = types[c - 0xc0].fixed + (types[c - 0xc0].unit == 0 ? n : 0);
	*items = n * types[c - 0xc0].unit;
	return true;
}

/* mp_count counts the objects at the top of a chunk. valid says whether they are whole and
 * nothing else is in it. */
uint64_t mp_count(const unsigned char *p, size_t len, bool *valid)
{
	uint64_t records = 0, open = 0, skip, items;
	size_t off = 0;

	*valid = true;
	while (*valid && off < len) {
		*valid = head(p, len, &off, &skip, &items) && skip <= len - off;
		if (!*valid)
			break;
		off += skip;
		open = (open > 0 ? open - 1 : 0) + items;
		records += open == 0;
	}
	*valid = *valid && open == 0;
	return records;
}
