/** /domains: custom domains. */
import { PageFrame } from "../../ui/page.tsx";

export function Page() {
  return <PageFrame title="Custom domains">{null}</PageFrame>;
}
