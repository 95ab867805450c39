create table "repository_prebuilds" (
  "id" text primary key,
  "organization_id" text not null,
  "owner_id" text not null,
  "url" text not null,
  "name" text not null,
  "interval_hours" bigint not null default 0,
  "keep" bigint not null,
  "status" text not null,
  "error" text not null default '',
  "commit" text not null default '',
  "images" text not null default '[]',
  "log" text not null default '',
  "tries" bigint not null default 0,
  "built_at" bigint,
  "next_at" bigint,
  "created_at" bigint not null
);
--> statement-breakpoint
alter table "repository_prebuilds" add foreign key ("organization_id") references "organizations" ("id") deferrable;
--> statement-breakpoint
alter table "repository_prebuilds" add foreign key ("owner_id") references "users" ("id") deferrable;
--> statement-breakpoint
create unique index "repository_prebuilds_url" on "repository_prebuilds" ("organization_id", "url");
--> statement-breakpoint
create index "repository_prebuilds_owner" on "repository_prebuilds" ("owner_id");
