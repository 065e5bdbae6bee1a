/** /projects: the projects of the organization. */
import { PageFrame } from "../../ui/page.tsx";

export function Page() {
  return <PageFrame title="Projects">{null}</PageFrame>;
}
