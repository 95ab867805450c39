-- Which node has which part, and until when a node is believed to live (docs/cluster-nodes.md, stage 5). What a commit holds stands apart from
-- what a sign of life writes, so that neither waits for the other.
create table fences (node text primary key, epoch bigint not null);
--> statement-breakpoint
create table leases (node text primary key, expires_at timestamptz not null);
--> statement-breakpoint
-- `given_at`: since when the node has it.
create table parts (part bigint primary key, node text not null, epoch bigint not null, given_at timestamptz not null default '-infinity');
--> statement-breakpoint
insert into parts select part, '', 0 from generate_series(0, 255) as part;
