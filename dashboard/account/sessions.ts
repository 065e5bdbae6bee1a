/** The active sessions of the account. */
import type { Session, SessionList } from "../../protocol/schemas/accounts/accounts.ts";
import { h, createTime } from "../ui/element.ts";
import {
  createBadge,
  createDetail,
  createRows,
  createSection,
  type Row,
  type Section,
} from "../ui/section.ts";
import { call } from "../session.ts";

export function createSessionsSection(): Section {
  return createSection("Sessions", async (self) => {
    const { sessions } = await call<SessionList>("GET", "/auth/sessions");
    return [createRows(sessions.map((session) => buildRow(session, self)))];
  });
}

function buildRow({ id, device, ip, createdAt, lastSeenAt, current }: Session, self: Section): Row {
  const name = device || "Unknown device";
  const about = [
    h("strong", {}, name),
    ...(current ? [createBadge("this one")] : []),
    createDetail(`${ip} · last used `, createTime(lastSeenAt), " · since ", createTime(createdAt)),
  ];
  if (current) return { about };
  const revoke = self.createDialogButton(
    "Sign out",
    {
      title: "Sign this session out?",
      about: [h("p", {}, h("strong", {}, name), ` at ${ip} will be signed out at once.`)],
      submit: "Sign out",
      kind: "danger",
      act: async () => void (await call("DELETE", `/auth/sessions/${id}`)),
    },
    { "aria-label": `Sign out ${name} at ${ip}` },
  );
  return { about, actions: [revoke] };
}
