create table "oidc_sessions" (
  "key_id" text primary key,
  "provider" text not null,
  "sealed_tokens" text not null,
  "has_refresh_token" bigint not null,
  "checked_at" bigint not null
);
--> statement-breakpoint
alter table "oidc_sessions" add foreign key ("key_id") references "api_keys" ("id") on delete cascade deferrable;
--> statement-breakpoint
create index "oidc_sessions_checked" on "oidc_sessions" ("checked_at");
--> statement-breakpoint
alter table "oidc_links" add column "username" text;
--> statement-breakpoint
alter table "oidc_links" add column "name" text;
