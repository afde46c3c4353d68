select id3, v3 from g1 order by id3, v3 limit 10 offset 500000
