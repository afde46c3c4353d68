select count(*) as found, sum(v1) as v1, sum(v2) as v2, sum(v3) as v3
from (select id6, sum(v1) as v1, sum(v2) as v2, sum(v3) as v3 from g1 group by id6) as answer
