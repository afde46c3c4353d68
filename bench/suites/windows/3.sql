select count(*) as running, sum(total) as totals
from (select sum(v1) over (partition by id6 order by v3) as total from g1) as answer
