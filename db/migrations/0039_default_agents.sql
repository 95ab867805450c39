ALTER TABLE `tasks` ADD `coding_agent` text;--> statement-breakpoint
ALTER TABLE `templates` ADD `default_coding_agent` text DEFAULT '' NOT NULL;