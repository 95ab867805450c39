CREATE TABLE `repository_prebuilds` (
	`id` text PRIMARY KEY NOT NULL,
	`organization_id` text NOT NULL,
	`owner_id` text NOT NULL,
	`url` text NOT NULL,
	`name` text NOT NULL,
	`interval_hours` integer DEFAULT 0 NOT NULL,
	`keep` integer NOT NULL,
	`status` text NOT NULL,
	`error` text DEFAULT '' NOT NULL,
	`commit` text DEFAULT '' NOT NULL,
	`images` text DEFAULT '[]' NOT NULL,
	`log` text DEFAULT '' NOT NULL,
	`tries` integer DEFAULT 0 NOT NULL,
	`built_at` integer,
	`next_at` integer,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`organization_id`) REFERENCES `organizations`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`owner_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE UNIQUE INDEX `repository_prebuilds_url` ON `repository_prebuilds` (`organization_id`,`url`);--> statement-breakpoint
CREATE INDEX `repository_prebuilds_owner` ON `repository_prebuilds` (`owner_id`);