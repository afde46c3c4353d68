select count(*) as numbered, sum(v3 * place) as weighted
from (select v3, row_number() over (order by v3) as place from g1) as answer
