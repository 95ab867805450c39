// The initial row of a new user.
import type { User } from "#db/users/users.ts";

type NewUserInput = Pick<
  User,
  "id" | "email" | "username" | "name" | "login_type" | "password_hash" | "roles" | "created_at"
>;

/** Returns the whole row of an active user. */
export const makeUser = (input: NewUserInput): User => ({
  ...input,
  updated_at: input.created_at,
  status: "active",
  avatar_url: "",
  theme_preference: "",
  terminal_font: "",
  quiet_hours_schedule: "",
  wake_on_connect: true,
  dotfiles_url: "",
  dotfiles_branch: "",
  dotfiles_install_command: "",
  task_notification_alert_dismissed: false,
  has_ai_seat: false,
  last_seen_at: null,
  deleted: false,
  second_factor_required: false,
  password_reset_at: null,
  github_com_user_id: null,
});
