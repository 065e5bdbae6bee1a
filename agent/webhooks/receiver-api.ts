/** The API's routes of webhook receivers, as far as the agent needs them: find, read and acknowledge. */
import { z } from "zod";
import {
  Acknowledgement,
  DeliveryPage,
  Receiver,
  ReceiverState,
} from "../../protocol/schemas/webhooks.ts";
import { UsageError } from "../options.ts";
import type { ServerAccess } from "../server-access.ts";
import { ServiceApi } from "../service-api.ts";
import { RejectionError } from "../rejection-error.ts";
import { PROGRAM } from "../program.ts";

export interface DeliveryQuery {
  after: string;
  limit: number;
  waitSeconds: number;
  /** RFC 3339. */
  since: string | undefined;
}

/** Calls throw RejectionError when a retry can't succeed, and RetryableError when it may. */
export class ReceiverApi {
  readonly #api: ServiceApi;

  constructor(access: ServerAccess) {
    this.#api = new ServiceApi(access, access.token);
  }

  /** @throws UsageError when several receivers have this name. */
  async find(nameOrId: string, signal: AbortSignal): Promise<ReceiverState> {
    const id = z.uuid().safeParse(nameOrId).success
      ? nameOrId
      : await this.#findId(nameOrId, signal);
    return this.#api.call(ReceiverState, "GET", `/webhook-receivers/${id}`, { signal });
  }

  readDeliveries(id: string, query: DeliveryQuery, signal: AbortSignal): Promise<DeliveryPage> {
    const { after, limit, waitSeconds, since } = query;
    const parameters = new URLSearchParams({
      after,
      limit: String(limit),
      wait: String(waitSeconds),
    });
    if (since !== undefined) parameters.set("since", since);
    const path = `/webhook-receivers/${id}/events?${parameters.toString()}`;
    const waitMs = waitSeconds * 1000;
    return this.#api.call(DeliveryPage, "GET", path, { signal, waitMs });
  }

  async acknowledge(id: string, cursor: string, signal: AbortSignal): Promise<void> {
    const path = `/webhook-receivers/${id}/ack`;
    await this.#api.call(Acknowledgement, "POST", path, { signal, body: { cursor } });
  }

  async #findId(name: string, signal: AbortSignal): Promise<string> {
    const all = await this.#api.call(z.array(Receiver), "GET", "/webhook-receivers", { signal });
    const [found, ...others] = all.filter((receiver) => receiver.name === name);
    if (!found) {
      const names = all.map((receiver) => receiver.name).join(", ");
      const known =
        names === ""
          ? `there are none yet, so create one in the dashboard: ${PROGRAM} open`
          : `existing receivers: ${names}`;
      throw new RejectionError("not_found", `there is no receiver called ${name}; ${known}`);
    }
    if (others.length > 0) {
      const ids = [found, ...others].map(({ id }) => id).join(", ");
      throw new UsageError(`${others.length + 1} receivers are called ${name}; use the id: ${ids}`);
    }
    return found.id;
  }
}
