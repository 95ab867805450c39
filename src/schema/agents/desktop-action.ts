// Wire shapes of a model's desktop actions, as the server sends them to the daemon (rule DT-4).
import { type Static, Type as t } from "@sinclair/typebox";
import { oneOf } from "../one-of.ts";

export const DESKTOP_ACTIONS = [
  ...(["screenshot", "click", "double_click", "triple_click", "right_click", "middle_click"] as const),
  ...(["move", "drag", "scroll", "type", "key", "wait"] as const),
] as const;

const coordinate = (description: string) => t.Optional(t.Integer({ minimum: 0, maximum: 65_535, description }));

export const DESKTOP_FIELDS = {
  action: oneOf(DESKTOP_ACTIONS, "What to do."),
  x: coordinate("Pixels from the left of the last screenshot: where to click, move, scroll, or begin to drag."),
  y: coordinate("Pixels from its top."),
  to_x: coordinate("For drag: where to release."),
  to_y: coordinate("For drag."),
  text: t.Optional(
    t.String({ maxLength: 10_000, description: "For `type`: the text to type. A line break presses Return." }),
  ),
  keys: t.Optional(
    t.String({
      maxLength: 256,
      description:
        'For `key`: the keys to press, such as "Return", "ctrl+c" or "alt+Tab"; separate several with spaces.',
    }),
  ),
  direction: t.Optional(oneOf(["up", "down", "left", "right"], "For scroll.")),
  amount: t.Optional(
    t.Integer({ minimum: 1, maximum: 100, description: "For `scroll`: the number of wheel clicks; default 3." }),
  ),
  duration_ms: t.Optional(
    t.Integer({
      minimum: 0,
      maximum: 30_000,
      description: "For `wait`: how long to wait, in milliseconds; default 1000.",
    }),
  ),
};

export const DesktopAction = t.Object({
  /** Idempotency key: each ID is executed once. */
  id: t.Optional(t.String({ minLength: 1, maxLength: 64 })),
  ...DESKTOP_FIELDS,
});
export type DesktopAction = Static<typeof DesktopAction>;

export type DesktopPicture = {
  readonly width: number;
  readonly height: number;
  /** A PNG in base64. */
  readonly image: string;
};
