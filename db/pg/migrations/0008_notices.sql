-- How many notices a node has told, said with each sign of life: whoever has heard fewer has missed some (db/pg/told/listener.ts). Where one node is active,
-- its epoch says whose number it is: an older version tells nothing, and leaves it as it was.
alter table leases add column told bigint not null default 0;
--> statement-breakpoint
alter table lease add column told bigint not null default 0, add column told_by bigint;
