alter table "tasks" add column "coding_agent" text;
--> statement-breakpoint
alter table "templates" add column "default_coding_agent" text not null default '';
