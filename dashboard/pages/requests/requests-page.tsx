/** /requests: the live inspector. */
import { useQueryParameters, useSetQueryParameters } from "../../app/query-parameters.ts";
import { PageFrame } from "../../ui/page.tsx";
import { Inspector } from "./inspector.tsx";

export function Page() {
  const setParameters = useSetQueryParameters();
  return (
    <PageFrame title="Requests" width="wide">
      <Inspector
        parameters={useQueryParameters()}
        setParameters={(changes) => setParameters({ ...changes })}
      />
    </PageFrame>
  );
}
