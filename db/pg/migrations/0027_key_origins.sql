alter table "api_keys" add column "parent_id" text;
--> statement-breakpoint
alter table "api_keys" add foreign key ("parent_id") references "api_keys" ("id") on delete cascade deferrable;
--> statement-breakpoint
alter table "api_keys" add column "workspace_id" text;
--> statement-breakpoint
create index "api_keys_parent" on "api_keys" ("parent_id") where "api_keys"."parent_id" is not null;
