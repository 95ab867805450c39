create table "home_backups" (
  "id" text primary key,
  "workspace_id" text not null,
  "status" text not null,
  "engine" text,
  "location" text not null,
  "bytes" bigint not null default 0,
  "added_bytes" bigint not null default 0,
  "error" text not null default '',
  "created_at" bigint not null,
  "verified_at" bigint
);
--> statement-breakpoint
alter table "home_backups" add foreign key ("workspace_id") references "workspaces" ("id") deferrable;
--> statement-breakpoint
create index "home_backups_workspace" on "home_backups" ("workspace_id", "created_at");
--> statement-breakpoint
create unique index "home_backups_creating" on "home_backups" ("workspace_id") where "home_backups"."status" = 'creating';
--> statement-breakpoint
create index "home_backups_status" on "home_backups" ("status");
--> statement-breakpoint
alter table "workspace_snapshots" add column "home_backup_id" text;
--> statement-breakpoint
alter table "templates" add column "home_backups" bigint not null default 1;
