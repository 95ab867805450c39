alter table "templates" add column "wake_on_connect" text not null default 'people';
--> statement-breakpoint
alter table "users" add column "wake_on_connect" bigint not null default 1;
