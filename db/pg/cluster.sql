-- What only a cluster has: its nodes, which of them is active, and the bytes of uploads, which one server keeps in its folder.
create table nodes (
  id text primary key,
  address text not null,
  version text not null,
  seen_at timestamptz not null
);
--> statement-breakpoint
-- Apart from the row of the epoch, which every commit holds, so that a renewal waits for no commit.
create table lease (id bigint primary key check (id = 1), node text not null, expires_at timestamptz not null);
--> statement-breakpoint
insert into lease values (1, '', '-infinity');
--> statement-breakpoint
create table blobs (hash text primary key, size bigint not null);
--> statement-breakpoint
create table blob_chunks (hash text not null, n bigint not null, bytes bytea not null, primary key (hash, n));
--> statement-breakpoint
-- Uploads are mostly packed already.
alter table blob_chunks alter column bytes set storage external;
