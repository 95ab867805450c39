create table "invitations" (
  "id" text primary key,
  "email" text not null,
  "name" text not null default '',
  "token_hash" text not null,
  "roles" text not null,
  "organization_id" text not null,
  "organization_roles" text not null,
  "group_ids" text not null,
  "invited_by" text not null,
  "created_at" bigint not null,
  "expires_at" bigint not null,
  "sent_at" bigint,
  "send_problem" text not null default ''
);
--> statement-breakpoint
alter table "invitations" add foreign key ("organization_id") references "organizations" ("id") deferrable;
--> statement-breakpoint
alter table "invitations" add foreign key ("invited_by") references "users" ("id") deferrable;
--> statement-breakpoint
create unique index "invitations_email" on "invitations" ((lower("invitations"."email")));
--> statement-breakpoint
create unique index "invitations_token" on "invitations" ("token_hash");
--> statement-breakpoint
create index "invitations_created" on "invitations" ("created_at");
--> statement-breakpoint
create index "invitations_inviter" on "invitations" ("invited_by");
