select count(*) as matches, sum(x.v1) as v1, sum(big.v2) as v2 from x join big on x.id3 = big.id3
