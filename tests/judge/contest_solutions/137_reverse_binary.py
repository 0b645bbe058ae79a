start, goal = map(int, input().split())
seen = {start}
stack = [start]
while stack:
    number = stack.pop()
    for digit in "01":
        text = (bin(number)[2:] + digit)[::-1]
        after = int(text, 2)
        if len(text) <= 62 and after not in seen:
            seen.add(after)
            stack.append(after)
print("YES" if goal in seen else "NO")
