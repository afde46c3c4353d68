select count(*) as ranked, sum(v1 * place) as weighted
from (select v1, rank() over (partition by id6 order by v3 desc) as place from g1) as answer
