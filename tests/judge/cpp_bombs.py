# ruff: noqa: E501 - a program on one line reads better than one that is broken for its width
"""C++ that floods its output when it runs, and C++ that never finishes compiling."""

from __future__ import annotations

# Each writes without end, whatever its writes say.
FLOODS = {
    "write": '#include <unistd.h>\nint main() { for (;;) write(1, "xxxxxxxxxxxxxxxx", 16); }',
    "printf": '#include <cstdio>\nint main() { for (;;) printf("%d\\n", 7); }',
    "iostream": "#include <iostream>\nint main() { for (;;) std::cout << 7 << std::endl; }",
    "errors": '#include <cstdio>\nint main() { for (;;) fputs("xxxxxxxxxxxxxxxx", stderr); }',
    "errno is looked at": '#include <cerrno>\n#include <unistd.h>\nint main() { for (;;) if (write(1, "x\\n", 2) < 0) errno = 0; }',
    "a large piece at once": "#include <unistd.h>\nstatic char x[1 << 24];\nint main() { for (;;) write(1, x, sizeof x); }",
}

# Each needs more time, memory, or disk than a compiler gets.
BOMBS = {
    "types that double": "template <int N, int M> struct G { static const int v = G<N - 1, M * 2>::v + G<N - 1, M * 2 + 1>::v; };\n"
    "template <int M> struct G<0, M> { static const int v = M; };\n"
    "int main() { return G<26, 0>::v; }",
    "pairs of pairs": "#include <utility>\ntemplate <int N> struct P { using type = std::pair<typename P<N - 1>::type, std::pair<typename P<N - 1>::type, int>>; };\n"
    "template <> struct P<0> { using type = int; };\nint main() { typename P<40>::type x; return sizeof x; }",
    "without end": "template <int N> struct A { static const int v = A<N + 1>::v; };\nint main() { return A<0>::v; }",
    "a constant that loops": "constexpr long f(long n) { long s = 0; for (long i = 0; i < n; ++i) for (long j = 0; j < n; ++j) s += i ^ j; return s; }\n"
    "constexpr long x = f(1000000);\nint main() { return x; }",
    "a constant that recurses": "constexpr long f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }\nconstexpr long x = f(60);\nint main() { return x; }",
    "macros that double": "#define A x x x x x x x x x x\n#define B A A A A A A A A A A\n#define C B B B B B B B B B B\n#define D C C C C C C C C C C\n"
    "#define E D D D D D D D D D D\n#define F E E E E E E E E E E\n#define G F F F F F F F F F F\n#define H G G G G G G G G G G\nint main() { int x; H; }",
    "a large array": "int x[1 << 29] = {1};\nint main() { return x[7]; }",
    "a large array of a large array": "struct A { char a[1 << 20]; };\nA x[1 << 12] = {{1}};\nint main() { return x[7].a[3]; }",
    "an endless file": '#include "/dev/zero"\nint main() {}',
    "a random file": '#include "/dev/urandom"\nint main() {}',
    "its own input": '#include "/dev/stdin"\nint main() {}',
    "an assembler's loop": 'asm(".rept 1000000000\\n.long 1\\n.endr");\nint main() {}',
    "an assembler's gap": 'asm(".org 0x7fffffff");\nint main() {}',
    "errors without end": "template <int N> struct A { A<N - 1> a; typename A<N - 1>::no b; };\nint main() { A<800> a; undeclared; }",
}
