ALTER TABLE `app_statuses` ADD `icon` text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE `app_statuses` ADD `needs_user_attention` integer DEFAULT false NOT NULL;