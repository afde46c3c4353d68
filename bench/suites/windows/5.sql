select count(step) as steps, sum(step) as total, max(step) as largest
from (select v3 - lag(v3) over (partition by id5 order by v3) as step from g1) as answer
