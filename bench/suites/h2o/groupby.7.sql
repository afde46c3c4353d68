select count(*) as found, sum(range_v1_v2) as range_v1_v2
from (select id3, max(v1) - min(v2) as range_v1_v2 from g1 group by id3) as answer
