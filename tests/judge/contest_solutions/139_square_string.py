for _ in range(int(input())):
    word = input().strip()
    half = len(word) // 2
    print("YES" if word[:half] == word[half:] else "NO")
