ALTER TABLE `templates` ADD `wake_on_connect` text DEFAULT 'people' NOT NULL;--> statement-breakpoint
ALTER TABLE `users` ADD `wake_on_connect` integer DEFAULT true NOT NULL;