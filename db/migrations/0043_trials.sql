CREATE TABLE `trial_diffs` (
	`trial_id` text NOT NULL,
	`number` integer NOT NULL,
	`folders` text NOT NULL,
	PRIMARY KEY(`trial_id`, `number`)
);
--> statement-breakpoint
CREATE TABLE `trials` (
	`id` text PRIMARY KEY NOT NULL,
	`chat_id` text NOT NULL,
	`workspace_id` text NOT NULL,
	`organization_id` text NOT NULL,
	`owner_id` text NOT NULL,
	`fork_id` text NOT NULL,
	`status` text NOT NULL,
	`error` text DEFAULT '' NOT NULL,
	`check_command` text DEFAULT '' NOT NULL,
	`check_timeout_seconds` integer NOT NULL,
	`ways` text NOT NULL,
	`keep` text,
	`open_ways` integer NOT NULL,
	`revision` integer DEFAULT 0 NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	FOREIGN KEY (`workspace_id`) REFERENCES `workspaces`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`organization_id`) REFERENCES `organizations`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`owner_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE INDEX `trials_chat` ON `trials` (`chat_id`,`created_at`);--> statement-breakpoint
CREATE INDEX `trials_owner` ON `trials` (`owner_id`,`status`);--> statement-breakpoint
CREATE INDEX `trials_status` ON `trials` (`status`);--> statement-breakpoint
ALTER TABLE `workspace_builds` ADD `restores_once` integer DEFAULT false NOT NULL;