ALTER TABLE `users` ADD `password_reset_at` integer;
