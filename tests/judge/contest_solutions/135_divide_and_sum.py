for _ in range(int(input())):
    size, pairs = map(int, input().split())
    numbers = sorted(map(int, input().split()))
    score = sum(numbers[: size - 2 * pairs])
    for place in range(pairs):
        score += numbers[size - 2 * pairs + place] // numbers[size - pairs + place]
    print(score)
