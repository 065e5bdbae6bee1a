/** /names: reserved subdomains. */
import { PageFrame } from "../../ui/page.tsx";

export function Page() {
  return <PageFrame title="Reserved names">{null}</PageFrame>;
}
