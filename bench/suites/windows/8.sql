select id6, v3, v1 from g1 order by v3 desc, id6, v1 limit 10
