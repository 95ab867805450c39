create table "deploy_keys" (
  "id" text primary key,
  "user_id" text not null,
  "url" text not null,
  "ssh_url" text not null,
  "repository" text not null,
  "ssh_repository" text not null,
  "public_key" text not null,
  "sealed_private_key" text not null,
  "created_at" bigint not null
);
--> statement-breakpoint
alter table "deploy_keys" add foreign key ("user_id") references "users" ("id") deferrable;
--> statement-breakpoint
create unique index "deploy_keys_repository" on "deploy_keys" ("user_id", "repository");
--> statement-breakpoint
alter table "agent_scripts" add column "is_dotfiles" bigint not null default 0;
--> statement-breakpoint
alter table "templates" add column "allow_dotfiles" bigint not null default 1;
--> statement-breakpoint
alter table "users" add column "dotfiles_url" text not null default '';
--> statement-breakpoint
alter table "users" add column "dotfiles_branch" text not null default '';
--> statement-breakpoint
alter table "users" add column "dotfiles_install_command" text not null default '';
