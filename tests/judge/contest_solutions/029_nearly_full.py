for _ in range(int(input())):
    input()
    numbers = list(map(int, input().split()))
    print(numbers.count(1) * 2 ** numbers.count(0))
