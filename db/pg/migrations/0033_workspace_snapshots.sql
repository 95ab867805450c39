create table "workspace_snapshots" (
  "id" text primary key,
  "workspace_id" text not null,
  "name" text not null default '',
  "reason" text not null,
  "status" text not null,
  "provisioner" text not null,
  "method" text,
  "bytes" bigint not null default 0,
  "error" text not null default '',
  "created_by" text not null,
  "created_at" bigint not null,
  "updated_at" bigint not null
);
--> statement-breakpoint
alter table "workspace_snapshots" add foreign key ("workspace_id") references "workspaces" ("id") deferrable;
--> statement-breakpoint
create index "workspace_snapshots_workspace" on "workspace_snapshots" ("workspace_id", "created_at");
--> statement-breakpoint
create index "workspace_snapshots_status" on "workspace_snapshots" ("status");
--> statement-breakpoint
alter table "templates" add column "snapshots_on_stop" bigint not null default 0;
--> statement-breakpoint
alter table "templates" add column "trash_days" bigint not null default 7;
--> statement-breakpoint
alter table "workspace_builds" add column "kept_ms" bigint;
--> statement-breakpoint
alter table "workspace_builds" add column "restored_snapshot_id" text;
--> statement-breakpoint
alter table "workspace_builds" add column "restored_workspace_id" text;
--> statement-breakpoint
create index "workspace_builds_restored" on "workspace_builds" ("restored_snapshot_id") where "workspace_builds"."restored_snapshot_id" is not null;
--> statement-breakpoint
alter table "workspaces" add column "trashed_until" bigint;
--> statement-breakpoint
alter table "workspaces" add column "trashed_bytes" bigint;
--> statement-breakpoint
create index "workspaces_trashed" on "workspaces" ("trashed_until") where "workspaces"."trashed_until" is not null;
