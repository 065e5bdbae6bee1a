/** Whether a delivery was acknowledged, as `underpass webhooks` does once the local server has it. */
import { Badge } from "../../../ui/section.tsx";

export function AcknowledgementBadge({ isDone }: { isDone: boolean }) {
  return isDone ? <Badge tone="good">acknowledged</Badge> : <Badge>pending</Badge>;
}
