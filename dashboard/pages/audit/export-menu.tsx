/** Downloads all events of the filter, page by page. */
import { useEffect, useRef, useState } from "react";
import type { AuditEvent } from "../../../protocol/schemas/organizations/audit.ts";
import { Button } from "../../ui/button.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Menu, MenuItem } from "../../ui/menu.tsx";
import { formatCount, formatQuantity } from "../../ui/numbers.ts";
import { notify, notifyOfError } from "../../ui/feedback/notifications.tsx";
import { downloadFile } from "../../ui/text/download.ts";
import { loadEvents, type EventFilter } from "./event-filter.ts";
import { formatEvents, type ExportFormat } from "./export-files.ts";
import { useResourceNames } from "./use-resource-names.ts";

const PAGE_EVENTS = 1_000;
/** About 50 MB as JSON, which a browser can hold. A longer log is exported in parts, by time. */
const EXPORT_MAX_EVENTS = 100_000;

export function ExportMenu({ filter }: { filter: EventFilter }) {
  const names = useResourceNames();
  const [loaded, setLoaded] = useState<number | null>(null);
  const abort = useRef<AbortController>(undefined);
  useEffect(() => () => abort.current?.abort(), []);

  async function exportEvents(format: ExportFormat): Promise<void> {
    const { signal } = (abort.current = new AbortController());
    setLoaded(0);
    try {
      const events = await loadAllEvents(filter, signal, setLoaded);
      const name = `audit-log-${new Date().toISOString().slice(0, 10)}.${format}`;
      downloadFile(name, formatEvents(events, format, names));
      notify(
        events.length < EXPORT_MAX_EVENTS
          ? `${formatQuantity(events.length, "event")} ${events.length === 1 ? "was" : "were"} exported.`
          : `The newest ${formatCount(events.length)} events were exported. Choose a time range for older ones.`,
      );
    } catch (error) {
      if (!signal.aborted) notifyOfError(error);
    }
    setLoaded(null);
  }

  const isBusy = loaded !== null;
  return (
    <>
      <p className="hint export-progress" aria-live="polite">
        {isBusy && `${formatQuantity(loaded, "event")}…`}
      </p>
      {isBusy && <Button onClick={() => abort.current?.abort()}>Cancel</Button>}
      {/* It stays while events are loaded, because a closed menu returns the focus to its button. */}
      <Menu
        trigger={
          <Button>
            Export
            <Icon name="down" />
          </Button>
        }
      >
        <MenuItem isDisabled={isBusy} onClick={() => void exportEvents("csv")}>
          As CSV, for spreadsheets
        </MenuItem>
        <MenuItem isDisabled={isBusy} onClick={() => void exportEvents("json")}>
          As JSON, for programs
        </MenuItem>
      </Menu>
    </>
  );
}

async function loadAllEvents(
  filter: EventFilter,
  signal: AbortSignal,
  onProgress: (count: number) => void,
): Promise<AuditEvent[]> {
  const events: AuditEvent[] = [];
  while (events.length < EXPORT_MAX_EVENTS) {
    const page = { limit: PAGE_EVENTS, after: events.at(-1)?.id };
    const next = await loadEvents("/events", filter, page, signal);
    events.push(...next);
    onProgress(events.length);
    if (next.length < PAGE_EVENTS) break;
  }
  return events;
}
