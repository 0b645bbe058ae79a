for _ in range(int(input())):
    goal = int(input())
    print(1 - goal, goal)
