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
  FN T abs_##T(T a) { return a < 0 ? negate_##T(a) : a; } \
  /* Ends the thread and leaves a note if b is zero. */ \
  FN T checked_##T(T b, i32 *error) { if (b == 0) { *error = 1; asm volatile("exit;"); } return b; }
INTEGER(i32, u32) INTEGER(i64, u64)
#define FLOAT(T) \
  FN T add_##T(T a, T b) { return a + b; } \
  FN T multiply_##T(T a, T b) { return a * b; }
FLOAT(f32) FLOAT(f64)
#define ORDERED(T) \
  FN T min_##T(T a, T b) { return a < b ? a : b; } \
  FN T max_##T(T a, T b) { return a > b ? a : b; }
ORDERED(i32) ORDERED(i64) ORDERED(f32) ORDERED(f64)
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
  FN int equal_##C(C a, C b) { return a.re == b.re && a.im == b.im; } \
  FN C conj_##C(C a) { return make_##C(a.re, -a.im); } \
  FN C abs_##C(C a) { return make_##C(hypot##s(a.re, a.im), 0); }
COMPLEX(c32, f32, f) COMPLEX(c64, f64, )
FN c64 c32_to_c64(c32 a) { return make_c64(a.re, a.im); }
FN c32 c64_to_c32(c64 a) { return make_c32((f32)a.re, (f32)a.im); }
#define ATOMIC(T, U, name) \
  FN void atomic_##name##_##T(T *at, T value) { \
    union Bits { T value; U bits; } old, next; \
    U seen; \
    old.bits = *(volatile U *)at; \
    do { seen = old.bits; next.value = name##_##T(old.value, value); old.bits = atomicCAS((U *)at, seen, next.bits); } while (old.bits != seen); \
  }
#define ATOMICS(T, U) ATOMIC(T, U, add) ATOMIC(T, U, multiply) ATOMIC(T, U, min) ATOMIC(T, U, max)
ATOMICS(i32, u32) ATOMICS(i64, u64) ATOMICS(f32, u32) ATOMICS(f64, u64)
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
REDUCES(i32) REDUCES(i64) REDUCES(f32) REDUCES(f64)
REDUCE(c32, add) REDUCE(c64, add) REDUCE(c32, multiply) REDUCE(c64, multiply)
