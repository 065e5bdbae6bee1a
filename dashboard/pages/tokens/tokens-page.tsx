/** /tokens: capability tokens. */
import { PageFrame } from "../../ui/page.tsx";

export function Page() {
  return <PageFrame title="Tokens">{null}</PageFrame>;
}
