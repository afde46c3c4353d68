select id1, sum(v1) as v1 from g1 group by id1
