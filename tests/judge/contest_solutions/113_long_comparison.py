def read():
    digits, zeros = input().split()
    return digits, len(digits) + int(zeros)


for _ in range(int(input())):
    (first, length1), (second, length2) = read(), read()
    if length1 != length2:
        print("<" if length1 < length2 else ">")
        continue
    width = max(len(first), len(second))
    first, second = first.ljust(width, "0"), second.ljust(width, "0")
    print("=" if first == second else "<" if first < second else ">")
