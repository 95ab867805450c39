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
  text: t.Optional(t.String({ maxLength: 10_000, description: "For type: the text; a line end presses Return." })),
  keys: t.Optional(
    t.String({ maxLength: 256, description: 'For key: such as "Return", "ctrl+c" or "alt+Tab"; several with blanks.' }),
  ),
  direction: t.Optional(oneOf(["up", "down", "left", "right"], "For scroll.")),
  amount: t.Optional(
    t.Integer({ minimum: 1, maximum: 100, description: "For scroll: clicks of the wheel, 3 by default." }),
  ),
  duration_ms: t.Optional(
    t.Integer({ minimum: 0, maximum: 30_000, description: "For wait: how long; 1000 by default." }),
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
