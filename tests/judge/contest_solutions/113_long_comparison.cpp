#include <iostream>
#include <string>

int main() {
    int cases;
    std::cin >> cases;
    while (cases--) {
        std::string first, second;
        int zeros1, zeros2;
        std::cin >> first >> zeros1 >> second >> zeros2;
        const int length1 = first.size() + zeros1, length2 = second.size() + zeros2;
        if (length1 != length2) {
            std::cout << (length1 < length2 ? "<\n" : ">\n");
            continue;
        }
        const std::size_t width = std::max(first.size(), second.size());
        first.resize(width, '0');
        second.resize(width, '0');
        std::cout << (first == second ? "=\n" : first < second ? "<\n" : ">\n");
    }
}
