ALTER TABLE `chats` ADD `asked_by` text;--> statement-breakpoint
UPDATE `chats` SET `asked_by` = (
	SELECT part.value ->> 'tool_name' FROM `messages` m, json_each(m.`content`) part
	WHERE m.`chat` = `chats`.`key` AND m.`id` > `chats`.`last_assistant_id` AND m.`deleted` = 0 AND m.`role` = 'tool'
		AND part.value ->> 'tool_name' IN ('ask_user_question', 'propose_plan')
		AND coalesce(part.value ->> 'is_error', 0) = 0
		AND NOT EXISTS (SELECT 1 FROM `messages` u WHERE u.`chat` = m.`chat` AND u.`id` > m.`id` AND u.`deleted` = 0 AND u.`role` = 'user')
	ORDER BY m.`id` DESC LIMIT 1)
WHERE `status` = 'waiting';
