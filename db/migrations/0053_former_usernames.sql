CREATE TABLE `former_usernames` (
	`name` text PRIMARY KEY NOT NULL,
	`user_id` text NOT NULL,
	`until` integer NOT NULL
);
