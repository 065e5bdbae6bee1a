/** /requests: the live inspector. */
import { PageFrame } from "../../ui/page.tsx";

export function Page() {
  return <PageFrame title="Requests">{null}</PageFrame>;
}
