// `slipway chat list|new|send|watch`: each word is a file of chat/.
import { subVerbs } from "../sub-verbs.ts";

export const run = subVerbs("chat", {
  list: () => import("./chat/list.ts"),
  new: () => import("./chat/new.ts"),
  send: () => import("./chat/send.ts"),
  watch: () => import("./chat/watch.ts"),
});
