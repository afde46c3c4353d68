select count(*) as found, sum(median_v3) as median_v3, sum(sd_v3) as sd_v3
from (select id4, id5, median(v3) as median_v3, stddev(v3) as sd_v3 from g1 group by id4, id5) as answer
