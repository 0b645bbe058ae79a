#include <algorithm>
#include <iostream>

int main() {
    int cases;
    std::cin >> cases;
    while (cases--) {
        long long side[3];
        std::cin >> side[0] >> side[1] >> side[2];
        std::sort(side, side + 3);
        const bool whole = side[0] + side[1] == side[2];
        const bool halved = (side[0] == side[1] && side[2] % 2 == 0) || (side[1] == side[2] && side[0] % 2 == 0);
        std::cout << (whole || halved ? "YES\n" : "NO\n");
    }
}
