select count(*) as framed, sum(lowest) as lowest, sum(highest) as highest
from (
    select
        min(v2) over (partition by id4 order by v3, v2 rows between 50 preceding and 50 following) as lowest,
        max(v2) over (partition by id4 order by v3, v2 rows between 50 preceding and 50 following) as highest
    from g1
) as answer
