select id1, id2, sum(v1) as v1 from g1 group by id1, id2
