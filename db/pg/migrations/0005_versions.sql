-- How often each node that writes has changed what is kept in memory by others (db/pg/told/raised.ts). Of a cluster only.
create table versions (
  node text primary key,
  epoch bigint not null,
  shown bigint not null,
  callers bigint not null
) with (fillfactor = 50);
