#include <iostream>
#include <set>
#include <vector>

int main() {
    long long start, goal;
    std::cin >> start >> goal;
    std::set<long long> seen{start};
    std::vector<long long> stack{start};
    while (!stack.empty()) {
        const long long number = stack.back();
        stack.pop_back();
        for (int digit = 0; digit < 2; ++digit) {
            if (number >> 60) continue;
            long long rest = 2 * number + digit, reversed = 0;
            for (; rest; rest >>= 1) reversed = 2 * reversed + (rest & 1);
            if (seen.insert(reversed).second) stack.push_back(reversed);
        }
    }
    std::cout << (seen.count(goal) ? "YES\n" : "NO\n");
}
