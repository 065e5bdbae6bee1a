/** What happened, newest first, a few at a time. */
import type { AuditEvent } from "../../protocol/schemas/organizations/audit.ts";
import { h, time, type Child } from "../ui/element.ts";
import { detail, rows, section, type Section } from "../ui/section.ts";
import { call } from "../session.ts";

const AT_ONCE = 8;

export function eventsSection(title: string, path: string): Section {
  return section(title, async (self) => {
    const more = h("div", { class: "actions" });
    const list = h("div", {});

    async function extend(after?: string): Promise<void> {
      const query = new URLSearchParams({ limit: String(AT_ONCE), ...(after && { after }) });
      const events = await call<AuditEvent[]>("GET", `${path}?${query}`);
      list.append(rows(events.map((event) => ({ about: describe(event) }))));
      const last = events.at(-1);
      more.replaceChildren(
        ...(events.length === AT_ONCE && last
          ? [self.button("Show more", () => extend(last.id))]
          : []),
      );
    }
    await extend();
    return [list, more];
  });
}

/** The names of the audit log are words already. */
function describe({ action, timestamp, userEmail, ipAddress }: AuditEvent): Child[] {
  const words = action.replaceAll("_", " ");
  const by = [userEmail, ipAddress].filter(Boolean).map((who) => ` · ${who}`);
  return [
    h("strong", {}, words.slice(0, 1).toUpperCase() + words.slice(1)),
    detail(time(timestamp), ...by),
  ];
}
