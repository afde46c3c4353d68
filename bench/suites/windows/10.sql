select count(distinct id3) as texts, count(distinct id6) as numbers from g1
