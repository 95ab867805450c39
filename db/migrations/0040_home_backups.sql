CREATE TABLE `home_backups` (
	`id` text PRIMARY KEY NOT NULL,
	`workspace_id` text NOT NULL,
	`status` text NOT NULL,
	`engine` text,
	`location` text NOT NULL,
	`bytes` integer DEFAULT 0 NOT NULL,
	`added_bytes` integer DEFAULT 0 NOT NULL,
	`error` text DEFAULT '' NOT NULL,
	`created_at` integer NOT NULL,
	`verified_at` integer,
	FOREIGN KEY (`workspace_id`) REFERENCES `workspaces`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE INDEX `home_backups_workspace` ON `home_backups` (`workspace_id`,`created_at`);--> statement-breakpoint
CREATE UNIQUE INDEX `home_backups_creating` ON `home_backups` (`workspace_id`) WHERE "home_backups"."status" = 'creating';--> statement-breakpoint
CREATE INDEX `home_backups_status` ON `home_backups` (`status`);--> statement-breakpoint
ALTER TABLE `workspace_snapshots` ADD `home_backup_id` text;--> statement-breakpoint
ALTER TABLE `templates` ADD `home_backups` integer DEFAULT true NOT NULL;