CREATE TABLE `workspace_snapshots` (
	`id` text PRIMARY KEY NOT NULL,
	`workspace_id` text NOT NULL,
	`name` text DEFAULT '' NOT NULL,
	`reason` text NOT NULL,
	`status` text NOT NULL,
	`provisioner` text NOT NULL,
	`method` text,
	`bytes` integer DEFAULT 0 NOT NULL,
	`error` text DEFAULT '' NOT NULL,
	`created_by` text NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	FOREIGN KEY (`workspace_id`) REFERENCES `workspaces`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE INDEX `workspace_snapshots_workspace` ON `workspace_snapshots` (`workspace_id`,`created_at`);--> statement-breakpoint
CREATE INDEX `workspace_snapshots_status` ON `workspace_snapshots` (`status`);--> statement-breakpoint
ALTER TABLE `templates` ADD `snapshots_on_stop` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `templates` ADD `trash_days` integer DEFAULT 7 NOT NULL;--> statement-breakpoint
ALTER TABLE `workspace_builds` ADD `kept_ms` integer;--> statement-breakpoint
ALTER TABLE `workspace_builds` ADD `restored_snapshot_id` text;--> statement-breakpoint
ALTER TABLE `workspace_builds` ADD `restored_workspace_id` text;--> statement-breakpoint
CREATE INDEX `workspace_builds_restored` ON `workspace_builds` (`restored_snapshot_id`) WHERE "workspace_builds"."restored_snapshot_id" is not null;--> statement-breakpoint
ALTER TABLE `workspaces` ADD `trashed_until` integer;--> statement-breakpoint
ALTER TABLE `workspaces` ADD `trashed_bytes` integer;--> statement-breakpoint
CREATE INDEX `workspaces_trashed` ON `workspaces` (`trashed_until`) WHERE "workspaces"."trashed_until" is not null;