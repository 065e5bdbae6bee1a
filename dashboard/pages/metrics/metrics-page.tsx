/** /metrics: charts of the traffic. */
import { PageFrame } from "../../ui/page.tsx";

export function Page() {
  return <PageFrame title="Metrics">{null}</PageFrame>;
}
