CREATE TABLE `model_recordings` (
	`id` text PRIMARY KEY NOT NULL,
	`user_id` text NOT NULL,
	`sealed_texts` text NOT NULL,
	`prompt_bytes` integer NOT NULL,
	`answer_bytes` integer NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `model_recordings_created` ON `model_recordings` (`created_at`);--> statement-breakpoint
CREATE INDEX `model_recordings_user` ON `model_recordings` (`user_id`);--> statement-breakpoint
ALTER TABLE `model_spend` ADD `recording_id` text DEFAULT '' NOT NULL;