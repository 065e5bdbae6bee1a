/** The hand-over of an admitted agent's connection to the tunnel's object. */
import { waitUntil } from "cloudflare:workers";
import {
  ADMISSION_HEADER,
  AGENT_CONNECT_URL,
  type AgentAdmission,
} from "../../../durable-objects/tunnel/admission.ts";
import { toObjectName } from "../../../durable-objects/tunnel/shards/object-name.ts";
import { SUBPROTOCOL } from "../../../protocol/wire/frames.ts";
import { log } from "../../../shared/log.ts";
import { describeError } from "../../errors.ts";
import { tunnelObject } from "../../objects.ts";
import type { ApiContext } from "../route.ts";
import { toConnectionRefusal } from "./refusals.ts";

/** @throws ConnectionRefusedError when the object does not accept the agent. */
export async function handOver(c: ApiContext, admission: AgentAdmission): Promise<Response> {
  try {
    const objectName = toObjectName(admission.tunnelId, admission.shard ?? 0);
    const response = await tunnelObject(c.env, objectName).fetch(AGENT_CONNECT_URL, {
      headers: {
        Upgrade: "websocket",
        "Sec-WebSocket-Protocol": SUBPROTOCOL,
        [ADMISSION_HEADER]: JSON.stringify(admission),
      },
    });
    if (response.status !== 101) throw toConnectionRefusal(response);
    waitUntil(c.env.INTERNAL_API.recheckAdmission(admission));
    return response;
  } catch (error) {
    await withdraw(c, admission);
    throw error;
  }
}

/** Never throws: the agent must learn why it was refused. A row that stays wrong is confirmed when it is read. */
async function withdraw(c: ApiContext, admission: AgentAdmission): Promise<void> {
  try {
    await c.env.INTERNAL_API.withdrawAdmission(admission);
  } catch (error) {
    const cause = describeError(error);
    log("error", "admission_not_withdrawn", { requestId: c.var.requestId, cause });
  }
}
