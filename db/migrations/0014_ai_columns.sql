ALTER TABLE `template_versions` ADD `has_ai_task` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `template_versions` ADD `has_external_agent` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `users` ADD `has_ai_seat` integer DEFAULT false NOT NULL;--> statement-breakpoint
UPDATE `template_versions` SET `has_external_agent` = 1 WHERE json_valid(`manifest`) AND json_extract(`manifest`, '$.provisioner') = 'external';--> statement-breakpoint
UPDATE `users` SET `has_ai_seat` = 1 WHERE EXISTS (SELECT 1 FROM `chats` WHERE `chats`.`owner_id` = `users`.`id`);
