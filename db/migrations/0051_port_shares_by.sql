ALTER TABLE `port_shares` ADD `shared_by` text;
