select count(*) as found from (select distinct id4, id5, id6 from g1) as answer
