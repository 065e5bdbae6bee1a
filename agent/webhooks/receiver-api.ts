/** The part of the service's API that brings deliveries: found, read and acknowledged with an agent's token. */
import { EnvHttpProxyAgent, fetch } from "undici";
import { z, type ZodType } from "zod";
import { FORWARD_ANSWER_MAX_MS } from "../../protocol/limits/receivers.ts";
import {
  Acknowledgement,
  DeliveryPage,
  Receiver,
  ReceiverState,
} from "../../protocol/resources/receivers.ts";
import { UsageError } from "../options.ts";
import { Rejected } from "../tunnel.ts";

/** No answer, or one that says to come back. */
export class Unreachable extends Error {
  override name = "Unreachable";
}

export interface Reading {
  after: string;
  limit: number;
  waitSeconds: number;
  /** RFC 3339. */
  since: string | undefined;
}

const Failure = z.object({ error: z.string(), message: z.string() });

/** Calls throw `Rejected` when asking again would change nothing, and `Unreachable` when it may. */
export class ReceiverApi {
  readonly #server: URL;
  readonly #token: Buffer;
  readonly #dispatcher = new EnvHttpProxyAgent();

  constructor(server: URL, token: Buffer) {
    this.#server = server;
    this.#token = token;
  }

  /** @throws UsageError when several have that name. */
  async find(nameOrId: string, signal: AbortSignal): Promise<ReceiverState> {
    const id = z.uuid().safeParse(nameOrId).success ? nameOrId : await this.#idOf(nameOrId, signal);
    return this.#call(ReceiverState, "GET", `/webhook-receivers/${id}`, { signal });
  }

  events(id: string, reading: Reading, signal: AbortSignal): Promise<DeliveryPage> {
    const { after, limit, waitSeconds, since } = reading;
    const query = new URLSearchParams({ after, limit: String(limit), wait: String(waitSeconds) });
    if (since !== undefined) query.set("since", since);
    const path = `/webhook-receivers/${id}/events?${query.toString()}`;
    return this.#call(DeliveryPage, "GET", path, { signal, waitMs: waitSeconds * 1000 });
  }

  async acknowledge(id: string, cursor: string, signal: AbortSignal): Promise<void> {
    const path = `/webhook-receivers/${id}/ack`;
    await this.#call(Acknowledgement, "POST", path, { signal, body: { cursor } });
  }

  async #idOf(name: string, signal: AbortSignal): Promise<string> {
    const all = await this.#call(z.array(Receiver), "GET", "/webhook-receivers", { signal });
    const [found, ...others] = all.filter((receiver) => receiver.name === name);
    if (!found) {
      const names = all.map((receiver) => receiver.name).join(", ");
      const known = names === "" ? "there is none yet" : `there are: ${names}`;
      throw new Rejected("not_found", `there is no receiver called ${name}; ${known}`);
    }
    if (others.length > 0) {
      const ids = [found, ...others].map(({ id }) => id).join(", ");
      throw new UsageError(`${others.length + 1} receivers are called ${name}; say which: ${ids}`);
    }
    return found.id;
  }

  async #call<Schema extends ZodType>(
    schema: Schema,
    method: string,
    path: string,
    { signal, body, waitMs = 0 }: { signal: AbortSignal; body?: unknown; waitMs?: number },
  ): Promise<z.output<Schema>> {
    const answer = await this.#fetch(method, path, body, [
      signal,
      AbortSignal.timeout(waitMs + FORWARD_ANSWER_MAX_MS),
    ]);
    const { status } = answer;
    if (status === 429 || status >= 500) throw new Unreachable(messageOf(answer));
    if (status >= 400) {
      const failure = Failure.safeParse(answer.body);
      throw new Rejected(failure.data?.error ?? String(status), messageOf(answer));
    }
    const parsed = schema.safeParse(answer.body);
    if (!parsed.success) throw new Unreachable("what answers is no Underpass server");
    return parsed.data;
  }

  async #fetch(method: string, path: string, body: unknown, signals: AbortSignal[]) {
    try {
      const answer = await fetch(new URL(path, this.#server).href, {
        method,
        headers: {
          authorization: `Bearer ${this.#token.toString("base64")}`,
          accept: "application/json",
          ...(body === undefined ? {} : { "content-type": "application/json" }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        redirect: "manual",
        signal: AbortSignal.any(signals),
        dispatcher: this.#dispatcher,
      });
      return { status: answer.status, body: await answer.json() };
    } catch (error) {
      throw new Unreachable(reasonOf(error));
    }
  }
}

function messageOf({ status, body }: { status: number; body: unknown }): string {
  return Failure.safeParse(body).data?.message ?? `the server answered ${status}`;
}

/** The innermost cause says what happened. */
function reasonOf(error: unknown): string {
  let reason = error;
  while (reason instanceof Error && reason.cause instanceof Error) reason = reason.cause;
  return reason instanceof Error ? reason.message || reason.name : String(reason);
}
