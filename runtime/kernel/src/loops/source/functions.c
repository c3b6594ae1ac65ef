#define COMPLEX_CALL(C, T, name, s) \
  FN C name##_##C(C a) { T _Complex z; __builtin_memcpy(&z, &a, sizeof z); z = __builtin_c##name##s(z); __builtin_memcpy(&a, &z, sizeof z); return a; }
#define COMPLEX_CALLS(C, T, s) \
  COMPLEX_CALL(C, T, sqrt, s) COMPLEX_CALL(C, T, exp, s) COMPLEX_CALL(C, T, log, s) \
  COMPLEX_CALL(C, T, sin, s) COMPLEX_CALL(C, T, cos, s) COMPLEX_CALL(C, T, tan, s) \
  COMPLEX_CALL(C, T, asin, s) COMPLEX_CALL(C, T, acos, s) COMPLEX_CALL(C, T, atan, s) \
  COMPLEX_CALL(C, T, sinh, s) COMPLEX_CALL(C, T, cosh, s) COMPLEX_CALL(C, T, tanh, s) \
  COMPLEX_CALL(C, T, asinh, s) COMPLEX_CALL(C, T, acosh, s) COMPLEX_CALL(C, T, atanh, s) \
  FN C conj_##C(C a) { a.im = -a.im; return a; } \
  FN C abs_##C(C a) { a.re = __builtin_hypot##s(a.re, a.im); a.im = 0; return a; } \
  FN C pow_##C(C a, C b) { T _Complex y, z; __builtin_memcpy(&y, &a, sizeof y); __builtin_memcpy(&z, &b, sizeof z); \
    y = __builtin_cpow##s(y, z); __builtin_memcpy(&a, &y, sizeof y); return a; }
COMPLEX_CALLS(c32, float, f) COMPLEX_CALLS(c64, double, )
