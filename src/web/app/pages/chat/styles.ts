// Rules of chats and of what models write; imported by what draws either.
import { adoptSheet } from "../../parts/adopt-sheet.ts";
import rules from "./chat.css" with { type: "text" };

adoptSheet(rules);
