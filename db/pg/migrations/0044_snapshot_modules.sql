alter table "workspace_snapshots" add column "sealed_state" text not null default '';
--> statement-breakpoint
alter table "template_versions" add column "has_snapshot_module" bigint not null default 0;
--> statement-breakpoint
alter table "workspace_builds" add column "sealed_snapshot_value" text not null default '';
