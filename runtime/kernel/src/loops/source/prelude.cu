typedef bool b8;
typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;
typedef struct { f32 re, im; } c32;
typedef struct { f64 re, im; } c64;
#define FN static __device__ __forceinline__
#define PRAGMA(text) _Pragma(#text)
#define UNROLL(n) PRAGMA(unroll n)
/* Integers wrap, which signed ones of C++ don't. */
#define INTEGER(T, U) \
  FN T add_##T(T a, T b) { return (T)((U)a + (U)b); } \
  FN T subtract_##T(T a, T b) { return (T)((U)a - (U)b); } \
  FN T multiply_##T(T a, T b) { return (T)((U)a * (U)b); } \
  FN T negate_##T(T a) { return (T)(0 - (U)a); } \
  FN T divide_##T(T a, T b) { return b == -1 ? negate_##T(a) : a / b; } \
  FN T remainder_##T(T a, T b) { return b == -1 ? 0 : a % b; } \
  FN T floor_divide_##T(T a, T b) { T r; if (b == -1) return negate_##T(a); r = a % b; return a / b - (r != 0 && (r < 0) != (b < 0)); } \
  FN T floor_remainder_##T(T a, T b) { T r; if (b == -1) return 0; r = a % b; return r != 0 && (r < 0) != (b < 0) ? r + b : r; } \
  FN T bit_##T(T a, T b) { return (T)(a >> (b & (T)(8 * sizeof(T) - 1)) & 1); } \
  FN T next_bit_##T(T a, T b) { i64 bits = 8 * sizeof(T), first = (i64)b; u64 rest; if (first < 0 || first >= bits) return (T)bits; rest = (u64)(i64)a >> first; return rest ? (T)(first + __ffsll((i64)rest) - 1) : (T)bits; } \
  FN T square_##T(T a) { return multiply_##T(a, a); } \
  FN T cube_##T(T a) { return multiply_##T(multiply_##T(a, a), a); } \
  FN T abs_##T(T a) { return a < 0 ? negate_##T(a) : a; } \
  /* Ends the thread and leaves a note if b is zero. */ \
  FN T checked_##T(T b, i32 *error) { if (b == 0) { *error = 1; asm volatile("exit;"); } return b; }
INTEGER(i8, u32) INTEGER(i16, u32) INTEGER(i32, u32) INTEGER(i64, u64)
#define UNSIGNED(T, U) \
  FN T add_##T(T a, T b) { return (T)((U)a + (U)b); } \
  FN T subtract_##T(T a, T b) { return (T)((U)a - (U)b); } \
  FN T multiply_##T(T a, T b) { return (T)((U)a * (U)b); } \
  FN T negate_##T(T a) { return (T)(0 - (U)a); } \
  FN T divide_##T(T a, T b) { return (T)(a / b); } \
  FN T remainder_##T(T a, T b) { return (T)(a % b); } \
  FN T floor_divide_##T(T a, T b) { return (T)(a / b); } \
  FN T floor_remainder_##T(T a, T b) { return (T)(a % b); } \
  FN T bit_##T(T a, T b) { return (T)(a >> (b & (T)(8 * sizeof(T) - 1)) & 1); } \
  FN T next_bit_##T(T a, T b) { i64 bits = 8 * sizeof(T), first = (i64)b; u64 rest; if (first < 0 || first >= bits) return (T)bits; rest = (u64)(i64)a >> first; return rest ? (T)(first + __ffsll((i64)rest) - 1) : (T)bits; } \
  FN T square_##T(T a) { return multiply_##T(a, a); } \
  FN T cube_##T(T a) { return multiply_##T(multiply_##T(a, a), a); } \
  FN T abs_##T(T a) { return a; } \
  FN T checked_##T(T b, i32 *error) { if (b == 0) { *error = 1; asm volatile("exit;"); } return b; }
UNSIGNED(b8, u32) UNSIGNED(u8, u32) UNSIGNED(u16, u32) UNSIGNED(u32, u32) UNSIGNED(u64, u64)
#define FLOAT(T) \
  FN T add_##T(T a, T b) { return a + b; } \
  FN T multiply_##T(T a, T b) { return a * b; } \
  FN T square_##T(T a) { return a * a; } \
  FN T cube_##T(T a) { return a * a * a; }
FLOAT(f32) FLOAT(f64)
#define ORDERED(T) \
  FN T min_##T(T a, T b) { return a < b ? a : b; } \
  FN T max_##T(T a, T b) { return a > b ? a : b; }
/* IEEE 754-2019 minimum and maximum. Where both comparisons fail, numbers are equal, and the sign of a zero decides, or one is NaN, and what both bits make is NaN too. */
#define ORDERED_FLOAT(T, I) \
  union Bits_##T { T value; I bits; }; \
  FN I bits_##T(T a) { union Bits_##T both; both.value = a; return both.bits; } \
  FN T of_bits_##T(I bits) { union Bits_##T both; both.bits = bits; return both.value; } \
  FN T min_##T(T a, T b) { return of_bits_##T(bits_##T(a < b ? a : b) | bits_##T(b < a ? b : a)); } \
  FN T max_##T(T a, T b) { return -min_##T(-a, -b); }
ORDERED(b8) ORDERED(u8) ORDERED(i8) ORDERED(u16) ORDERED(i16) ORDERED(u32) ORDERED(i32) ORDERED(u64) ORDERED(i64)
ORDERED_FLOAT(f32, i32) ORDERED_FLOAT(f64, i64)
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
  FN C multiply_##C(C a, C b) { return make_##C(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re); } \
  FN C negate_##C(C a) { return make_##C(-a.re, -a.im); } \
  FN int equal_##C(C a, C b) { return a.re == b.re && a.im == b.im; } \
  FN C square_##C(C a) { return multiply_##C(a, a); } \
  FN C cube_##C(C a) { return multiply_##C(multiply_##C(a, a), a); } \
  FN C conj_##C(C a) { return make_##C(a.re, -a.im); } \
  FN C abs_##C(C a) { return make_##C(hypot##s(a.re, a.im), 0); }
COMPLEX(c32, f32, f) COMPLEX(c64, f64, )
FN c64 c32_to_c64(c32 a) { return make_c64(a.re, a.im); }
FN c32 c64_to_c32(c64 a) { return make_c32((f32)a.re, (f32)a.im); }
/* Quotients of complex numbers, as the crate's arithmetic::divide makes them: where squares could be out of range, operands are scaled; c32 are divided in double precision. */
#define FINITE(a) ((a) - (a) == 0)
#define INFINITE(a) ((a) == (a) && !FINITE(a))
#define BOXED(a) copysign(INFINITE(a) ? 1.0 : 0.0, a)
static __device__ __noinline__ c64 special_quotient(c64 a, c64 b, c64 q) {
  const f64 infinity = __longlong_as_double(0x7ff0000000000000LL);
  if (b.re == 0 && b.im == 0) {
    f64 i = copysign(infinity, b.re);
    return make_c64(i * a.re, i * a.im);
  }
  if ((INFINITE(a.re) || INFINITE(a.im)) && FINITE(b.re) && FINITE(b.im)) {
    f64 re = BOXED(a.re), im = BOXED(a.im);
    return make_c64(infinity * (re * b.re + im * b.im), infinity * (im * b.re - re * b.im));
  }
  if ((INFINITE(b.re) || INFINITE(b.im)) && FINITE(a.re) && FINITE(a.im)) {
    f64 re = BOXED(b.re), im = BOXED(b.im);
    return make_c64(0.0 * (a.re * re + a.im * im), 0.0 * (a.im * re - a.re * im));
  }
  return q;
}
FN c64 plain_quotient(c64 a, c64 b) {
  f64 n = b.re * b.re + b.im * b.im;
  return make_c64((a.re * b.re + a.im * b.im) / n, (a.im * b.re - a.re * b.im) / n);
}
FN i64 scale(c64 a) {
  u64 re = bits_f64(fabs(a.re)), im = bits_f64(fabs(a.im));
  i64 exponent = 2045 - (i64)((re > im ? re : im) >> 52);
  return exponent > 1 ? exponent : 1;
}
FN f64 power(i64 exponent) { return of_bits_f64(exponent << 52); }
static __device__ __noinline__ c64 scaled_quotient(c64 a, c64 b) {
  i64 of_a = scale(a), of_b = scale(b), exponent = of_b - of_a, half = (i64)((u64)(exponent + 4096) >> 1) - 2048;
  f64 pa = power(of_a), pb = power(of_b), p = power(1023 + half), r = power(1023 + exponent - half);
  c64 q = plain_quotient(make_c64(a.re * pa, a.im * pa), make_c64(b.re * pb, b.im * pb));
  q = make_c64(q.re * p * r, q.im * p * r);
  return q.re != q.re && q.im != q.im ? special_quotient(a, b, q) : q;
}
FN c64 divide_c64(c64 a, c64 b) {
  const f64 least = 0x1p-400, most = 0x1p400, x = fabs(a.re) + fabs(a.im), y = fabs(b.re) + fabs(b.im);
  return y > least && y < most && x < most && (x > least || x == 0) ? plain_quotient(a, b) : scaled_quotient(a, b);
}
FN c32 divide_c32(c32 a, c32 b) {
  c64 x = c32_to_c64(a), y = c32_to_c64(b), q = plain_quotient(x, y);
  return c64_to_c32(q.re != q.re && q.im != q.im ? special_quotient(x, y, q) : q);
}
#define ATOMIC(T, U, name) \
  FN void atomic_##name##_##T(T *at, T value) { \
    union Bits { T value; U bits; } old, next; \
    U seen; \
    old.bits = *(volatile U *)at; \
    do { seen = old.bits; next.value = name##_##T(old.value, value); old.bits = atomicCAS((U *)at, seen, next.bits); } while (old.bits != seen); \
  }
/* Within the word of 32 bits around it. */
#define ATOMIC_NARROW(T, name) \
  FN void atomic_##name##_##T(T *at, T value) { \
    u64 address = (u64)at; \
    u32 *word = (u32 *)(address & ~3ull); \
    u32 shift = (u32)(address & 3) * 8, mask = ((1u << (8 * sizeof(T))) - 1) << shift, seen, old = *(volatile u32 *)word; \
    do { \
      seen = old; \
      old = atomicCAS(word, seen, (seen & ~mask) | (((u32)name##_##T((T)((seen & mask) >> shift), value) << shift) & mask)); \
    } while (old != seen); \
  }
#define ATOMICS_NARROW(T) ATOMIC_NARROW(T, add) ATOMIC_NARROW(T, multiply) ATOMIC_NARROW(T, min) ATOMIC_NARROW(T, max)
ATOMICS_NARROW(b8) ATOMICS_NARROW(u8) ATOMICS_NARROW(i8) ATOMICS_NARROW(u16) ATOMICS_NARROW(i16)
#define ATOMICS(T, U) ATOMIC(T, U, add) ATOMIC(T, U, multiply) ATOMIC(T, U, min) ATOMIC(T, U, max)
ATOMICS(u32, u32) ATOMICS(i32, u32) ATOMICS(u64, u64) ATOMICS(i64, u64) ATOMICS(f32, u32) ATOMICS(f64, u64)
FN void atomic_add_c32(c32 *at, c32 value) { atomic_add_f32(&at->re, value.re); atomic_add_f32(&at->im, value.im); }
FN void atomic_add_c64(c64 *at, c64 value) { atomic_add_f64(&at->re, value.re); atomic_add_f64(&at->im, value.im); }
/* All threads of a block, or of a warp, get what theirs combine to. A block has at most 1024 threads, in one dimension. */
#define REDUCE(T, name) \
  static __device__ T block_##name##_##T(T value) { \
    __shared__ T part[1024]; \
    part[threadIdx.x] = value; \
    __syncthreads(); \
    for (u32 n = blockDim.x; n > 1; n = (n + 1) / 2) { \
      if (threadIdx.x < n / 2) part[threadIdx.x] = name##_##T(part[threadIdx.x], part[threadIdx.x + (n + 1) / 2]); \
      __syncthreads(); \
    } \
    value = part[0]; \
    __syncthreads(); \
    return value; \
  } \
  static __device__ T warp_##name##_##T(T value) { \
    __shared__ T part[1024]; \
    T *own = part + (threadIdx.x & ~31u); \
    own[threadIdx.x & 31] = value; \
    __syncwarp(); \
    for (u32 n = 16; n > 0; n /= 2) { \
      if ((threadIdx.x & 31) < n) own[threadIdx.x & 31] = name##_##T(own[threadIdx.x & 31], own[(threadIdx.x & 31) + n]); \
      __syncwarp(); \
    } \
    value = own[0]; \
    __syncwarp(); \
    return value; \
  }
#define REDUCES(T) REDUCE(T, add) REDUCE(T, multiply) REDUCE(T, min) REDUCE(T, max)
REDUCES(b8) REDUCES(u8) REDUCES(i8) REDUCES(u16) REDUCES(i16) REDUCES(u32) REDUCES(i32) REDUCES(u64) REDUCES(i64) REDUCES(f32) REDUCES(f64)
REDUCE(c32, add) REDUCE(c64, add) REDUCE(c32, multiply) REDUCE(c64, multiply)
