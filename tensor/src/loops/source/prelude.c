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
#define FN static inline
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
#define INTEGER(T) \
  FN T floor_divide_##T(T a, T b) { T q, r; if (b == -1) return -a; q = a / b; r = a % b; return q - (r != 0 && (r < 0) != (b < 0)); } \
  FN T floor_remainder_##T(T a, T b) { T r; if (b == -1) return 0; r = a % b; return r != 0 && (r < 0) != (b < 0) ? r + b : r; } \
  FN T divide_##T(T a, T b) { return b == -1 ? -a : a / b; } \
  FN T remainder_##T(T a, T b) { return b == -1 ? 0 : a % b; } \
  FN T abs_##T(T a) { return a < 0 ? -a : a; }
#define ORDERED(T) \
  FN T min_##T(T a, T b) { return a < b ? a : b; } \
  FN T max_##T(T a, T b) { return a > b ? a : b; }
INTEGER(i32) INTEGER(i64)
ORDERED(i32) ORDERED(i64) ORDERED(f32) ORDERED(f64)
/* Ends the function with an error if b is zero. */
#define CHECKED(T, f, a, b) ({ T a_ = (a), b_ = (b); if (__builtin_expect(b_ == 0, 0)) return 1; f##_##T(a_, b_); })
#define FLOAT_TO(T, least, past, greatest) \
  FN T f64_to_##T(f64 a) { return a != a ? 0 : a < least ? (T)least : a >= past ? greatest : (T)a; } \
  FN T f32_to_##T(f32 a) { return f64_to_##T(a); }
FLOAT_TO(i32, -2147483648.0, 2147483648.0, 2147483647)
FLOAT_TO(i64, -9223372036854775808.0, 9223372036854775808.0, 9223372036854775807LL)
#define COMPLEX(C, T, s) \
  FN C make_##C(T re, T im) { C z; z.re = re; z.im = im; return z; } \
  FN C add_##C(C a, C b) { return make_##C(a.re + b.re, a.im + b.im); } \
  FN C subtract_##C(C a, C b) { return make_##C(a.re - b.re, a.im - b.im); } \
  FN C multiply_##C(C a, C b) { return make_##C(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re); } \
  FN C divide_##C(C a, C b) { T n = b.re * b.re + b.im * b.im; \
    return make_##C((a.re * b.re + a.im * b.im) / n, (a.im * b.re - a.re * b.im) / n); } \
  FN C negate_##C(C a) { return make_##C(-a.re, -a.im); } \
  FN int equal_##C(C a, C b) { return a.re == b.re && a.im == b.im; }
COMPLEX(c32, f32, f) COMPLEX(c64, f64, )
FN c64 c32_to_c64(c32 a) { return make_c64(a.re, a.im); }
FN c32 c64_to_c32(c64 a) { return make_c32((f32)a.re, (f32)a.im); }
