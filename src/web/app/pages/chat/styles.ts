// Styles for chats and Markdown, imported by the components that render them.
import { adoptSheet } from "../../parts/adopt-sheet.ts";
import rules from "./chat.css" with { type: "text" };

adoptSheet(rules);
