#define ATOMIC(T, U, name, next) \
  FN void atomic_##name##_##T(T *at, T value) { \
    union { T value; U bits; } old, new; \
    old.bits = __atomic_load_n((U *)at, __ATOMIC_RELAXED); \
    do new.value = next; \
    while (!__atomic_compare_exchange_n((U *)at, &old.bits, new.bits, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)); \
  }
#define ATOMICS(T, U) \
  ATOMIC(T, U, add, old.value + value) ATOMIC(T, U, multiply, old.value * value) \
  ATOMIC(T, U, min, min_##T(old.value, value)) ATOMIC(T, U, max, max_##T(old.value, value)) \
  ATOMIC(T, U, or, old.value || value) ATOMIC(T, U, and, old.value && value)
ATOMICS(b8, u8) ATOMICS(u8, u8) ATOMICS(i8, u8) ATOMICS(u16, __UINT16_TYPE__) ATOMICS(i16, __UINT16_TYPE__) ATOMICS(u32, u32)
ATOMICS(i32, __UINT32_TYPE__) ATOMICS(u64, u64) ATOMICS(i64, u64) ATOMICS(f32, __UINT32_TYPE__) ATOMICS(f64, u64)
FN void atomic_add_c32(c32 *at, c32 value) { atomic_add_f32(&at->re, value.re); atomic_add_f32(&at->im, value.im); }
FN void atomic_add_c64(c64 *at, c64 value) { atomic_add_f64(&at->re, value.re); atomic_add_f64(&at->im, value.im); }
