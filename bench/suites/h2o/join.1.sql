select count(*) as matches, sum(x.v1) as v1, sum(small.v2) as v2 from x join small on x.id1 = small.id1
