/** The body of a delivery, in the views that bodies of captured requests have. */
import { useMemo } from "react";
import type { Delivery } from "../../../../protocol/schemas/webhooks.ts";
import { fromBase64 } from "../../../../shared/bytes.ts";
import { useQueryParameters, useSetQueryParameters } from "../../../app/query-parameters.ts";
import { BodyView } from "../../requests/detail/body/body-view.tsx";

export function DeliveryBody({ delivery }: { delivery: Delivery }) {
  const { view } = useQueryParameters();
  const setParameters = useSetQueryParameters();
  const { body, contentType, headers } = delivery;
  const bytes = useMemo(() => fromBase64(body) ?? new Uint8Array(), [body]);
  const encoding = headers["content-encoding"] ?? "identity";
  if (bytes.length === 0) return <p>The body is empty.</p>;
  return (
    <BodyView
      name="Body"
      fileName="delivery"
      bytes={bytes}
      contentType={contentType ?? undefined}
      isEncoded={encoding !== "identity"}
      isCut={false}
      view={view}
      onSelectView={(next) => setParameters({ view: next })}
    />
  );
}
