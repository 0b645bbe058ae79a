MODULUS = 10**9 + 7
for _ in range(int(input())):
    base, rank = map(int, input().split())
    total, power = 0, 1
    while rank:
        if rank & 1:
            total += power
        power = power * base % MODULUS
        rank >>= 1
    print(total % MODULUS)
