create table "workspace_forks" (
  "id" text primary key,
  "workspace_id" text not null,
  "organization_id" text not null,
  "owner_id" text not null,
  "snapshot_id" text not null,
  "status" text not null,
  "error" text not null default '',
  "copies" text not null,
  "problems" text not null default '{}',
  "created_at" bigint not null,
  "updated_at" bigint not null
);
--> statement-breakpoint
alter table "workspace_forks" add foreign key ("workspace_id") references "workspaces" ("id") deferrable;
--> statement-breakpoint
alter table "workspace_forks" add foreign key ("organization_id") references "organizations" ("id") deferrable;
--> statement-breakpoint
alter table "workspace_forks" add foreign key ("owner_id") references "users" ("id") deferrable;
--> statement-breakpoint
create index "workspace_forks_workspace" on "workspace_forks" ("workspace_id", "created_at");
--> statement-breakpoint
create index "workspace_forks_status" on "workspace_forks" ("status");
