#include <cstdio>
#include <set>

int main() {
    std::set<long long> liked;
    for (long long x = 1; x * x <= 1000000000; ++x) liked.insert(x * x);
    for (long long x = 1; x * x * x <= 1000000000; ++x) liked.insert(x * x * x);
    int cases;
    if (std::scanf("%d", &cases) != 1) return 1;
    while (cases--) {
        long long limit, count = 0;
        if (std::scanf("%lld", &limit) != 1) return 1;
        for (long long number : liked) count += number <= limit;
        std::printf("%lld\n", count);
    }
}
