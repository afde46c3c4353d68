-- Without the groups of a constant, whose correlation is null in one engine and NaN in another.
select count(*) as found, sum(r2) as r2
from (select id2, id4, corr(v1, v2) * corr(v1, v2) as r2 from g1 group by id2, id4) as answer
where r2 <= 2
