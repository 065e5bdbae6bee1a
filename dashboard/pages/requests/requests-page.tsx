/** /requests: the live inspector. */
import { useQueryParameters, useSetQueryParameters } from "../../app/query-parameters.ts";
import { PageFrame } from "../../ui/page.tsx";
import { useRememberedList } from "./list/remembered-list.ts";
import { Inspector } from "./inspector.tsx";
import type { InspectorParameters } from "./list/use-request-view.ts";

export function Page() {
  const parameters = useQueryParameters();
  const setParameters = useSetQueryParameters();
  useRememberedList(parameters);

  /** "Back" closes the details, however many requests were selected one after another. */
  function change(changes: InspectorParameters): void {
    const isNewEntry = Boolean(changes.selected) && parameters.selected === undefined;
    setParameters({ ...changes }, { isNewEntry });
  }
  return (
    <PageFrame title="Requests" width="wide">
      <Inspector parameters={parameters} setParameters={change} />
    </PageFrame>
  );
}
