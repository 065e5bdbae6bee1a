/** Downloads the listed requests as an HTTP archive. */
import {
  parseCaptureFilter,
  type CaptureFilterQuery,
} from "../../../../protocol/captures/filter.ts";
import { load } from "../../../api/session.ts";
import { formatCapturesQuery } from "../../../inspector/captures-query.ts";
import type { RequestView } from "../../../inspector/request-view.ts";
import { ActionButton } from "../../../ui/button.tsx";
import { downloadFile } from "../../../ui/text/download.ts";
import { notify } from "../../../ui/feedback/notifications.tsx";
import { formatCount } from "../../../ui/numbers.ts";

/** The part of the filter that the API can apply. */
function parseQuery(filter: string): CaptureFilterQuery {
  try {
    return parseCaptureFilter(filter).query;
  } catch {
    // The list does not apply an invalid filter either.
    return {};
  }
}

interface Archive {
  log: { entries: { _id: string }[] };
}

interface DownloadButtonProps {
  filter: string;
  /** Empty: all tunnels. */
  tunnelId: string;
  view: RequestView;
}

export function DownloadButton({ filter, tunnelId, view }: DownloadButtonProps) {
  async function download(): Promise<void> {
    const query = formatCapturesQuery({
      ...parseQuery(filter),
      ...(tunnelId !== "" && { tunnel_id: tunnelId }),
    });
    const archive = await load<Archive>(`/inspector/har?${query}`);
    // The API applies only a part of the filter.
    archive.log.entries = archive.log.entries.filter(({ _id: id }) => view.findIndex(id) >= 0);
    downloadFile("underpass.har", JSON.stringify(archive));
    notify(
      `${formatCount(archive.log.entries.length)} of the newest listed requests were downloaded.`,
    );
  }
  return (
    <ActionButton kind="quiet" aria-label="Download as HAR" action={download}>
      HAR
    </ActionButton>
  );
}
