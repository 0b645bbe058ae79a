for _ in range(int(input())):
    start, jumps = map(int, input().split())
    last = jumps % 4
    if last == 0:
        shift = 0
    elif last == 1:
        shift = -jumps
    elif last == 2:
        shift = 1
    else:
        shift = jumps + 1
    print(start + shift if start % 2 == 0 else start - shift)
