ALTER TABLE `chats` ADD `crashes` text;
