-- Of what lists show those counts that leave most of it alone: what decides which workspaces there are, in `versions`, and for each workspace what
-- its agents have written (db/pg/told/raised.ts). Of a cluster only.
alter table versions add column listed bigint not null default 0;
--> statement-breakpoint
create table workspace_versions (
  workspace_id text primary key,
  version bigint not null
) with (fillfactor = 50);
