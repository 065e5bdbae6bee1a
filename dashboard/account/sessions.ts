/** Where the account is signed in. */
import type { Session, SessionList } from "../../protocol/schemas/accounts/accounts.ts";
import { h, time } from "../ui/element.ts";
import { badge, detail, rows, section, type Row, type Section } from "../ui/section.ts";
import { call } from "../session.ts";

export function sessionsSection(): Section {
  return section("Sessions", async (self) => {
    const { sessions } = await call<SessionList>("GET", "/auth/sessions");
    return [rows(sessions.map((session) => rowOf(session, self)))];
  });
}

function rowOf({ id, device, ip, createdAt, lastSeenAt, current }: Session, self: Section): Row {
  const name = device || "Unknown device";
  const about = [
    h("strong", {}, name),
    ...(current ? [badge("this one")] : []),
    detail(`${ip} · last used `, time(lastSeenAt), " · since ", time(createdAt)),
  ];
  if (current) return { about };
  const revoke = self.asking(
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
