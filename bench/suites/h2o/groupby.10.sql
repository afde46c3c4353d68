select count(*) as found, sum(v3) as v3, sum(many) as many
from (
    select id1, id2, id3, id4, id5, id6, sum(v3) as v3, count(*) as many from g1 group by id1, id2, id3, id4, id5, id6
) as answer
