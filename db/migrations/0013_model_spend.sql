CREATE TABLE `model_spend` (
	`key` integer PRIMARY KEY NOT NULL,
	`user_id` text NOT NULL,
	`chat_id` text NOT NULL,
	`root_chat_id` text NOT NULL,
	`kind` text NOT NULL,
	`model_config_id` text NOT NULL,
	`input_tokens` integer NOT NULL,
	`output_tokens` integer NOT NULL,
	`cache_read_tokens` integer NOT NULL,
	`cache_creation_tokens` integer NOT NULL,
	`cost_micros` integer,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `model_spend_user` ON `model_spend` (`user_id`,`created_at`,`cost_micros`);--> statement-breakpoint
CREATE INDEX `model_spend_root` ON `model_spend` (`root_chat_id`);--> statement-breakpoint
CREATE INDEX `model_spend_created` ON `model_spend` (`created_at`);--> statement-breakpoint
INSERT INTO `model_spend` (`user_id`,`chat_id`,`root_chat_id`,`kind`,`model_config_id`,`input_tokens`,`output_tokens`,`cache_read_tokens`,`cache_creation_tokens`,`cost_micros`,`created_at`)
SELECT c.owner_id, c.id, coalesce(c.root_chat_id, c.parent_chat_id, c.id), CASE m.role WHEN 'user' THEN 'compaction' ELSE 'chat_turn' END,
	coalesce(m.model_config_id, ''), coalesce(m.usage ->> 'input_tokens', 0), coalesce(m.usage ->> 'output_tokens', 0),
	coalesce(m.usage ->> 'cache_read_tokens', 0), coalesce(m.usage ->> 'cache_creation_tokens', 0), NULL, m.created_at
FROM `messages` m JOIN `chats` c ON c.key = m.chat WHERE m.usage IS NOT NULL AND m.usage <> '{}' ORDER BY m.id;
