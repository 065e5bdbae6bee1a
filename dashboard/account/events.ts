/** Audit events, newest first, one page at a time. */
import type { AuditEvent } from "../../protocol/schemas/organizations/audit.ts";
import { h, createTime, type Child } from "../ui/element.ts";
import { createDetail, createRows, createSection, type Section } from "../ui/section.ts";
import { call } from "../session.ts";

const PAGE_ROWS = 8;

export function createEventsSection(title: string, path: string): Section {
  return createSection(title, async (self) => {
    const more = h("div", { class: "actions" });
    const list = h("div", {});

    async function showMore(after?: string): Promise<void> {
      const query = new URLSearchParams({ limit: String(PAGE_ROWS), ...(after && { after }) });
      const events = await call<AuditEvent[]>("GET", `${path}?${query}`);
      list.append(createRows(events.map((event) => ({ about: describe(event) }))));
      const last = events.at(-1);
      more.replaceChildren(
        ...(events.length === PAGE_ROWS && last
          ? [self.createButton("Show more", () => showMore(last.id))]
          : []),
      );
    }
    await showMore();
    return [list, more];
  });
}

/** The action's name without underscores is readable text. */
function describe({ action, timestamp, userEmail, ipAddress }: AuditEvent): Child[] {
  const text = action.replaceAll("_", " ");
  const by = [userEmail, ipAddress].filter(Boolean).map((who) => ` · ${who}`);
  return [
    h("strong", {}, text.slice(0, 1).toUpperCase() + text.slice(1)),
    createDetail(createTime(timestamp), ...by),
  ];
}
