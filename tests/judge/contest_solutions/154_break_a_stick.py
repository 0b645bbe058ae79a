for _ in range(int(input())):
    short, middle, long = sorted(map(int, input().split()))
    whole = short + middle == long
    halved = (short == middle and long % 2 == 0) or (middle == long and short % 2 == 0)
    print("YES" if whole or halved else "NO")
