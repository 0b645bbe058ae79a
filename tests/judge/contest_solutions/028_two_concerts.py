for _ in range(int(input())):
    ones, twos, threes = map(int, input().split())
    print((ones + 2 * twos + 3 * threes) % 2)
