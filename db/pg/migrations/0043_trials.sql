create table "trial_diffs" (
  "trial_id" text not null,
  "number" bigint not null,
  "folders" text not null,
  primary key ("trial_id", "number")
);
--> statement-breakpoint
create table "trials" (
  "id" text primary key,
  "chat_id" text not null,
  "workspace_id" text not null,
  "organization_id" text not null,
  "owner_id" text not null,
  "fork_id" text not null,
  "status" text not null,
  "error" text not null default '',
  "check_command" text not null default '',
  "check_timeout_seconds" bigint not null,
  "ways" text not null,
  "keep" text,
  "open_ways" bigint not null,
  "revision" bigint not null default 0,
  "created_at" bigint not null,
  "updated_at" bigint not null
);
--> statement-breakpoint
alter table "trials" add foreign key ("workspace_id") references "workspaces" ("id") deferrable;
--> statement-breakpoint
alter table "trials" add foreign key ("organization_id") references "organizations" ("id") deferrable;
--> statement-breakpoint
alter table "trials" add foreign key ("owner_id") references "users" ("id") deferrable;
--> statement-breakpoint
create index "trials_chat" on "trials" ("chat_id", "created_at");
--> statement-breakpoint
create index "trials_owner" on "trials" ("owner_id", "status");
--> statement-breakpoint
create index "trials_status" on "trials" ("status");
--> statement-breakpoint
alter table "workspace_builds" add column "restores_once" bigint not null default 0;
