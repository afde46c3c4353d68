select count(*) as matches, sum(x.v1) as v1, sum(medium.v2) as v2 from x join medium on x.id2 = medium.id2
