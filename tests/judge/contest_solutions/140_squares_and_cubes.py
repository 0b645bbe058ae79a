liked = sorted({x * x for x in range(1, 31623)} | {x**3 for x in range(1, 1001)})
for _ in range(int(input())):
    limit = int(input())
    low, high = 0, len(liked)
    while low < high:
        middle = (low + high) // 2
        if liked[middle] <= limit:
            low = middle + 1
        else:
            high = middle
    print(low)
