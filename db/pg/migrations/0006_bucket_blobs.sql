-- Which objects of a bucket hold uploads (db/pg/bucket-blobs.ts). Each upload has an object of its own, so that a late removal meets no later one.
create table blob_objects (
  object text primary key,
  hash text not null,
  size bigint not null,
  -- coming: may be in the bucket. kept: is there, whole. going: is removed from it, and then here.
  state text not null check (state in ('coming', 'kept', 'going')),
  at timestamptz not null default now()
);
--> statement-breakpoint
create index blob_objects_hash on blob_objects (hash);
