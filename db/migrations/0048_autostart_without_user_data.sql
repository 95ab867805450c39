ALTER TABLE `workspaces` ADD `autostart_no_user_data` integer DEFAULT false NOT NULL;
