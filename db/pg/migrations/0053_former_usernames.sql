create table "former_usernames" (
  "name" text primary key not null,
  "user_id" text not null,
  "until" bigint not null
);
