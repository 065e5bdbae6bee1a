/** The password that visitors need, as `--basic-auth user:password` gives it. No message contains the password. */
import { describeIssue } from "../../protocol/schemas/issue-messages.ts";
import { TunnelPassword } from "../../protocol/schemas/access/basic-auth.ts";
import { UsageError } from "../options.ts";
import { OFF } from "./off.ts";

/** @param source for messages: `--basic-auth`. @returns null when it is to be removed. @throws UsageError */
export function parseBasicAuth(text: string, source: string): TunnelPassword | null {
  // It has no colon, so that it can't be a user name and a password.
  if (text === OFF) return null;
  const colon = text.indexOf(":");
  if (colon < 0) {
    throw new UsageError(
      `${source} must be a user name and a password, such as visitor:PASSWORD; or off`,
    );
  }
  const parts = { username: text.slice(0, colon), password: text.slice(colon + 1) };
  const parsed = TunnelPassword.safeParse(parts, { error: describeIssue });
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const part = issue?.path[0] === "username" ? "user name" : "password";
  throw new UsageError(`the ${part} of ${source} ${issue?.message}`);
}
