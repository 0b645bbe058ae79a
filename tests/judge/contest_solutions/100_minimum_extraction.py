from itertools import pairwise

for _ in range(int(input())):
    input()
    numbers = sorted(map(int, input().split()))
    best = numbers[0]
    for lower, upper in pairwise(numbers):
        best = max(best, upper - lower)
    print(best)
