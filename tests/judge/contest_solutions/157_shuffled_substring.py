MODULUS = 998244353
size, ones = map(int, input().split())
text = input()

factorial = [1]
for number in range(1, size + 1):
    factorial.append(factorial[-1] * number % MODULUS)


def choose(total, part):
    if not 0 <= part <= total:
        return 0
    return factorial[total] * pow(factorial[part] * factorial[total - part], MODULUS - 2, MODULUS) % MODULUS


places = [-1, *(place for place, letter in enumerate(text) if letter == "1"), size]
count = 1
if 0 < ones <= text.count("1"):
    # Count each shuffled window, then take away what two neighbouring windows can both reach.
    count = 0
    last = len(places) - 1 - ones
    for first in range(1, last + 1):
        window = places[first + ones] - places[first - 1] - 1
        count += choose(window, ones)
        if first < last:
            shared = places[first + ones] - places[first] - 1
            count -= choose(shared, ones - 1)
print(count % MODULUS)
