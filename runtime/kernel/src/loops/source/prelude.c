typedef _Bool b8;
typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef short i16;
typedef unsigned int u32;
typedef signed int i32;
typedef __INT64_TYPE__ i64;
typedef __UINT64_TYPE__ u64;
typedef float f32;
typedef double f64;
typedef struct { f32 re, im; } c32;
typedef struct { f64 re, im; } c64;
typedef i32 (*chunk_t)(void *context, i64 chunk);
typedef struct {
  i32 (*run)(void *team, i64 chunks, chunk_t body, void *context);
  void *team;
  i64 size;
} team_t;
int posix_memalign(void **, __SIZE_TYPE__, __SIZE_TYPE__);
void free(void *);
#define PRAGMA(text) _Pragma(#text)
#ifdef __clang__
#define UNROLL(n) PRAGMA(unroll n)
#else
#define UNROLL(n) PRAGMA(GCC unroll n)
#endif
/* After a short loop over vectors: GCC 12 writes it out first, and then takes the loop around it for one over vectors, which gathers what was contiguous. */
#define APART __asm__ volatile("")
/* Fetches what lies 2 KiB after an element, whether or not there is anything. */
#define AHEAD(element) __builtin_prefetch((const void *)((u64)&(element) + 2048))
#define FN static inline
/* A product that is rounded before it is added. GCC 12 and later fuse alternating differences and sums even where they are told not to contract. */
#if defined(ROUNDED) && defined(__has_builtin)
#if __has_builtin(__builtin_assoc_barrier)
#define PRODUCT(a, b) __builtin_assoc_barrier((a) * (b))
#endif
#endif
#ifndef PRODUCT
#define PRODUCT(a, b) ((a) * (b))
#endif
static void release(void *buffer) { free(*(void **)buffer); }
/* Zeros or nothing yet; null if there is no memory. An empty buffer takes some too. */
static void *allocate(u64 count, u64 size, int zeroed) {
  void *memory = 0;
  u64 bytes;
  if (__builtin_mul_overflow(count, size, &bytes) || bytes > (u64)-1 / 2) return 0;
  if (posix_memalign(&memory, 64, bytes + 64)) return 0;
  if (zeroed) __builtin_memset(memory, 0, bytes);
  return memory;
}
FN i64 extent(i64 low, i64 high) { return high > low ? high - low : 0; }
#define POWERS(T) \
  FN T square_##T(T a) { return a * a; } \
  FN T cube_##T(T a) { return a * a * a; }
#define INTEGER(T) \
  FN T floor_divide_##T(T a, T b) { T q, r; if (b == -1) return -a; q = a / b; r = a % b; return q - (r != 0 && (r < 0) != (b < 0)); } \
  FN T floor_remainder_##T(T a, T b) { T r; if (b == -1) return 0; r = a % b; return r != 0 && (r < 0) != (b < 0) ? r + b : r; } \
  FN T bit_##T(T a, T b) { return (T)(a >> (b & (T)(8 * sizeof(T) - 1)) & 1); } \
  FN T next_bit_##T(T a, T b) { i64 bits = 8 * sizeof(T), first = (i64)b; u64 rest; if (first < 0 || first >= bits) return (T)bits; rest = (u64)(i64)a >> first; return rest ? (T)(first + __builtin_ctzll(rest)) : (T)bits; } \
  FN T divide_##T(T a, T b) { return b == -1 ? -a : a / b; } \
  FN T remainder_##T(T a, T b) { return b == -1 ? 0 : a % b; } \
  FN T abs_##T(T a) { return a < 0 ? -a : a; } \
  POWERS(T)
#define UNSIGNED(T) \
  FN T floor_divide_##T(T a, T b) { return a / b; } \
  FN T floor_remainder_##T(T a, T b) { return a % b; } \
  FN T bit_##T(T a, T b) { return (T)(a >> (b & (T)(8 * sizeof(T) - 1)) & 1); } \
  FN T next_bit_##T(T a, T b) { i64 bits = 8 * sizeof(T), first = (i64)b; u64 rest; if (first < 0 || first >= bits) return (T)bits; rest = (u64)(i64)a >> first; return rest ? (T)(first + __builtin_ctzll(rest)) : (T)bits; } \
  FN T divide_##T(T a, T b) { return a / b; } \
  FN T remainder_##T(T a, T b) { return a % b; } \
  FN T abs_##T(T a) { return a; } \
  POWERS(T)
#define ORDERED(T) \
  FN T min_##T(T a, T b) { return a < b ? a : b; } \
  FN T max_##T(T a, T b) { return a > b ? a : b; }
/* IEEE 754-2019 minimum and maximum. Where both comparisons fail, numbers are equal, and the sign of a zero decides, or one is NaN, and what both bits make is NaN too.
   order_max maps floats to integers, of which the greatest is that of the maximum: reductions over integers need not be in order. order_min does so for the minimum. */
#define ORDERED_FLOAT(T, I, least, greatest) \
  FN I bits_##T(T a) { I bits; __builtin_memcpy(&bits, &a, sizeof bits); return bits; } \
  FN T of_bits_##T(I bits) { T a; __builtin_memcpy(&a, &bits, sizeof a); return a; } \
  FN T min_##T(T a, T b) { return of_bits_##T(bits_##T(a < b ? a : b) | bits_##T(b < a ? b : a)); } \
  FN T max_##T(T a, T b) { return -min_##T(-a, -b); } \
  FN I turned_##T(I bits) { return bits ^ (bits < 0 ? greatest : 0); } \
  FN I order_min_##T(T a) { return a != a ? least : turned_##T(bits_##T(a)); } \
  FN I order_max_##T(T a) { return a != a ? greatest : turned_##T(bits_##T(a)); } \
  FN T of_order_##T(I order) { return of_bits_##T(turned_##T(order)); }
INTEGER(i8) INTEGER(i16) INTEGER(i32) INTEGER(i64)
UNSIGNED(b8) UNSIGNED(u8) UNSIGNED(u16) UNSIGNED(u32) UNSIGNED(u64)
POWERS(f32) POWERS(f64)
ORDERED(b8) ORDERED(u8) ORDERED(i8) ORDERED(u16) ORDERED(i16) ORDERED(u32) ORDERED(i32) ORDERED(u64) ORDERED(i64)
ORDERED_FLOAT(f32, i32, -2147483647 - 1, 2147483647)
ORDERED_FLOAT(f64, i64, -9223372036854775807LL - 1, 9223372036854775807LL)
/* Ends the function with an error if b is zero. */
#define CHECKED(T, f, a, b) ({ T a_ = (a), b_ = (b); if (__builtin_expect(b_ == 0, 0)) return 1; f##_##T(a_, b_); })
#define FLOAT_TO(T, least, past, greatest) \
  FN T f64_to_##T(f64 a) { return a != a ? 0 : a < least ? (T)least : a >= past ? greatest : (T)a; } \
  FN T f32_to_##T(f32 a) { return f64_to_##T(a); }
FLOAT_TO(u8, 0.0, 256.0, 255)
FLOAT_TO(i8, -128.0, 128.0, 127)
FLOAT_TO(u16, 0.0, 65536.0, 65535)
FLOAT_TO(i16, -32768.0, 32768.0, 32767)
FLOAT_TO(u32, 0.0, 4294967296.0, 4294967295u)
FLOAT_TO(i32, -2147483648.0, 2147483648.0, 2147483647)
FLOAT_TO(u64, 0.0, 18446744073709551616.0, 18446744073709551615ull)
FLOAT_TO(i64, -9223372036854775808.0, 9223372036854775808.0, 9223372036854775807LL)
#define COMPLEX(C, T, s) \
  FN C make_##C(T re, T im) { C z; z.re = re; z.im = im; return z; } \
  FN C add_##C(C a, C b) { return make_##C(a.re + b.re, a.im + b.im); } \
  FN C subtract_##C(C a, C b) { return make_##C(a.re - b.re, a.im - b.im); } \
  FN C multiply_##C(C a, C b) { return make_##C(PRODUCT(a.re, b.re) - PRODUCT(a.im, b.im), PRODUCT(a.re, b.im) + PRODUCT(a.im, b.re)); } \
  FN C negate_##C(C a) { return make_##C(-a.re, -a.im); } \
  FN C square_##C(C a) { return multiply_##C(a, a); } \
  FN C cube_##C(C a) { return multiply_##C(multiply_##C(a, a), a); } \
  FN int equal_##C(C a, C b) { return a.re == b.re && a.im == b.im; }
COMPLEX(c32, f32, f) COMPLEX(c64, f64, )
FN c64 c32_to_c64(c32 a) { return make_c64(a.re, a.im); }
FN c32 c64_to_c32(c64 a) { return make_c32((f32)a.re, (f32)a.im); }
/* Quotients of complex numbers, as the crate's arithmetic::divide makes them: where squares could be out of range, operands are scaled; c32 are divided in double precision. */
#define FINITE(a) ((a) - (a) == 0)
#define INFINITE(a) ((a) == (a) && !FINITE(a))
#define BOXED(a) __builtin_copysign(INFINITE(a) ? 1.0 : 0.0, a)
static __attribute__((noinline, cold)) c64 special_quotient(c64 a, c64 b, c64 q) {
  const f64 infinity = __builtin_inf();
  if (b.re == 0 && b.im == 0) {
    f64 i = __builtin_copysign(infinity, b.re);
    return make_c64(i * a.re, i * a.im);
  }
  if ((INFINITE(a.re) || INFINITE(a.im)) && FINITE(b.re) && FINITE(b.im)) {
    f64 re = BOXED(a.re), im = BOXED(a.im);
    return make_c64(infinity * (PRODUCT(re, b.re) + PRODUCT(im, b.im)), infinity * (PRODUCT(im, b.re) - PRODUCT(re, b.im)));
  }
  if ((INFINITE(b.re) || INFINITE(b.im)) && FINITE(a.re) && FINITE(a.im)) {
    f64 re = BOXED(b.re), im = BOXED(b.im);
    return make_c64(0.0 * (PRODUCT(a.re, re) + PRODUCT(a.im, im)), 0.0 * (PRODUCT(a.im, re) - PRODUCT(a.re, im)));
  }
  return q;
}
FN c64 plain_quotient(c64 a, c64 b) {
  f64 n = PRODUCT(b.re, b.re) + PRODUCT(b.im, b.im);
  return make_c64((PRODUCT(a.re, b.re) + PRODUCT(a.im, b.im)) / n, (PRODUCT(a.im, b.re) - PRODUCT(a.re, b.im)) / n);
}
FN i64 scale(c64 a) {
  u64 re = bits_f64(__builtin_fabs(a.re)), im = bits_f64(__builtin_fabs(a.im));
  i64 exponent = 2045 - (i64)((re > im ? re : im) >> 52);
  return exponent > 1 ? exponent : 1;
}
FN f64 power(i64 exponent) { return of_bits_f64(exponent << 52); }
static __attribute__((noinline, cold)) c64 scaled_quotient(c64 a, c64 b) {
  i64 of_a = scale(a), of_b = scale(b), exponent = of_b - of_a, half = (i64)((u64)(exponent + 4096) >> 1) - 2048;
  f64 pa = power(of_a), pb = power(of_b), p = power(1023 + half), r = power(1023 + exponent - half);
  c64 q = plain_quotient(make_c64(a.re * pa, a.im * pa), make_c64(b.re * pb, b.im * pb));
  q = make_c64(q.re * p * r, q.im * p * r);
  return q.re != q.re && q.im != q.im ? special_quotient(a, b, q) : q;
}
FN c64 divide_c64(c64 a, c64 b) {
  const f64 least = 0x1p-400, most = 0x1p400, x = __builtin_fabs(a.re) + __builtin_fabs(a.im), y = __builtin_fabs(b.re) + __builtin_fabs(b.im);
  return y > least && y < most && x < most && (x > least || x == 0) ? plain_quotient(a, b) : scaled_quotient(a, b);
}
FN c32 divide_c32(c32 a, c32 b) {
  c64 x = c32_to_c64(a), y = c32_to_c64(b), q = plain_quotient(x, y);
  return c64_to_c32(q.re != q.re && q.im != q.im ? special_quotient(x, y, q) : q);
}
