/** Messages over WebSockets and TCP tunnels, and agents that ended by themselves. */
import type { ConversationEntry, History } from "../history.ts";
import { toCheckResult, type CheckResult } from "./check.ts";

/** RFC 6455 §7.4.1: the purpose of the connection is fulfilled. */
export const NORMAL_CLOSE = "closed with 1000";

export function checkConversations(history: History): CheckResult[] {
  const conversations = history.list("conversation");
  const received = conversations.reduce((sum, entry) => sum + entry.received, 0);
  return [
    toCheckResult(
      "messages of a conversation come back once, in order, and to no other visitor",
      conversations
        .filter((entry) => entry.mismatch !== undefined)
        .map(({ over, mismatch = "" }) => `${over}: ${mismatch}`),
      `${received} messages in ${conversations.length} conversations`,
    ),
    toCheckResult(
      "a WebSocket that loses messages is not closed as if it were complete",
      conversations.filter(isFalselyComplete).map(({ sent, received }) => `${received} of ${sent}`),
      `${conversations.filter(({ over }) => over === "websocket").length} WebSockets`,
    ),
    toCheckResult(
      "no agent gives up",
      history
        .list("exit")
        .map(({ program, code, detail }) => `${program} ended with code ${code}: ${detail}`),
      "the agents' ends",
    ),
  ];
}

function isFalselyComplete({ over, sent, received, end }: ConversationEntry): boolean {
  return over === "websocket" && end === NORMAL_CLOSE && received < sent;
}
