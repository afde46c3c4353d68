select count(*) as framed, sum(total) as totals
from (
    select sum(v1) over (partition by id4 order by v3, v1 rows between 100 preceding and current row) as total from g1
) as answer
