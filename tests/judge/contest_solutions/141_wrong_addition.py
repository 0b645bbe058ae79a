for _ in range(int(input())):
    first, total = input().split()
    digits = []
    place = len(total) - 1
    for digit in reversed(first):
        if place < 0:
            break
        wanted = int(total[place])
        if wanted < int(digit):
            place -= 1
            wanted += 10 * int(total[place]) if place >= 0 else 0
        if not 0 <= wanted - int(digit) <= 9:
            break
        digits.append(str(wanted - int(digit)))
        place -= 1
    if len(digits) < len(first):
        print(-1)
    else:
        print(int(total[: place + 1] + "".join(reversed(digits))))
