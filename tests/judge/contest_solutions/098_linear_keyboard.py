from itertools import pairwise

for _ in range(int(input())):
    keyboard = input().strip()
    places = [keyboard.index(letter) for letter in input().strip()]
    print(sum(abs(left - right) for left, right in pairwise(places)))
