ALTER TABLE `agents` ADD `daemon_id` text DEFAULT '' NOT NULL;
--> statement-breakpoint
ALTER TABLE `agents` ADD `daemon_replaced_at` integer;
