alter table "agents" add column "daemon_id" text not null default '';
--> statement-breakpoint
alter table "agents" add column "daemon_replaced_at" bigint;
