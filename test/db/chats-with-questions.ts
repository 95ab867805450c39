// Chats as release 0.2.0 stored them, and the question that each of them waits for as a later version records it.

const chat = (key: number, status: string, last_assistant_id: number): string =>
  `insert into chats (key, id, organization_id, owner_id, last_model_config_id, title, client_type, created_at, updated_at, status,
    snapshot_version, history_version, last_assistant_id)
  values (${key}, 'chat-${key}', 'o', 'u', 'm', 't', 'ui', 0, 0, '${status}', 1, 1, ${last_assistant_id})`;

const message = (id: number, chat: number, role: string, content: object): string =>
  `insert into messages (id, chat, revision, role, visibility, content, created_at)
  values (${id}, ${chat}, 1, '${role}', 'both', '${JSON.stringify([content])}', 0)`;

const result = (tool_name: string, is_error = false): object => ({ type: "tool-result", tool_name, is_error });

export const CHATS_WITH_QUESTIONS: readonly string[] = [
  "insert into users (id, email, username, status, login_type, created_at, updated_at) values ('u', 'u@example.com', 'u', 'active', 'password', 0, 0)",
  "insert into organizations (id, name, display_name, created_at, updated_at) values ('o', 'o', 'O', 0, 0)",
  chat(1, "waiting", 10),
  message(10, 1, "assistant", { type: "text", text: "I ask." }),
  message(11, 1, "tool", result("ask_user_question")),
  message(12, 1, "tool", result("execute")),
  chat(2, "waiting", 20),
  message(20, 2, "assistant", { type: "text", text: "A plan." }),
  message(21, 2, "tool", result("propose_plan")),
  chat(3, "waiting", 30),
  message(30, 3, "assistant", { type: "text", text: "I ask." }),
  message(31, 3, "tool", result("ask_user_question", true)),
  chat(4, "waiting", 40),
  message(40, 4, "assistant", { type: "text", text: "I ask." }),
  message(41, 4, "tool", result("ask_user_question")),
  message(42, 4, "user", { type: "text", text: "An answer." }),
  chat(5, "error", 50),
  message(50, 5, "assistant", { type: "text", text: "I ask." }),
  message(51, 5, "tool", result("ask_user_question")),
];

export const ASKED_BY: readonly (string | null)[] = ["ask_user_question", "propose_plan", null, null, null];
