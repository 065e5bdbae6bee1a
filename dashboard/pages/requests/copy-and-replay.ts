/** Copies, saves and replays captured requests, and notifies the user of the result. */
import { joinTarget } from "../../../protocol/request-target.ts";
import type {
  CaptureDetail,
  CaptureSummary,
} from "../../../protocol/schemas/inspector/captures.ts";
import type { ReplayResult } from "../../../protocol/schemas/inspector/replays.ts";
import { call, load } from "../../api/session.ts";
import { notify } from "../../ui/feedback/notifications.tsx";
import { copyText } from "../../ui/text/clipboard.ts";
import { downloadFile } from "../../ui/text/download.ts";
import { REDACTED } from "./decode/redacted.ts";

/** In a notification. */
const PATH_SHOWN_CHARS = 100;

export async function copyCurl({ id }: CaptureSummary): Promise<void> {
  const command = load<string>(`/inspector/${id}/curl`);
  await copyText(command);
  const isComplete = !(await command).includes(REDACTED);
  notify(`The curl command was copied.${isComplete ? "" : ` Replace ${REDACTED} in it.`}`);
}

/** Loads the request, because the list may have only the beginning of its URL. @param publicUrl of the tunnel. */
export async function copyUrl({ id }: CaptureSummary, publicUrl: string): Promise<void> {
  const url = load<CaptureDetail>(`/inspector/${id}`).then(
    ({ path, query }) => `${publicUrl.replace(/\/$/, "")}${joinTarget(path, query)}`,
  );
  await copyText(url);
  notify("The URL was copied.");
}

/** Downloads the request as an HTTP archive. */
export async function saveArchive({ id }: CaptureSummary): Promise<void> {
  const archive = await load<unknown>(`/inspector/${id}/har`);
  downloadFile(`${id}.har`, JSON.stringify(archive));
}

/** Sends the request again as it was captured. @param open shows the details of the new request. */
export async function replayUnchanged(
  { id, method, path }: CaptureSummary,
  open: (id: string) => void,
): Promise<void> {
  const { id: newId, comparison } = await call<ReplayResult>("POST", `/inspector/${id}/replay`);
  const { original, replayed } = comparison.status;
  const status = original === replayed ? `${replayed}` : `${replayed} instead of ${original}`;
  notify(`${method} ${path.slice(0, PATH_SHOWN_CHARS)} was replayed: ${status}.`, {
    label: "Show it",
    act: () => open(newId),
  });
}
