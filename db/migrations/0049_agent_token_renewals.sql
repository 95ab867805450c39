ALTER TABLE `agents` ADD `token_generation` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `agents` ADD `token_made_at` integer;--> statement-breakpoint
ALTER TABLE `workspaces` ADD `access_lost_at` integer;
