for _ in range(int(input())):
    word = input()
    print("YES" if 2 * word.count("B") == len(word) else "NO")
