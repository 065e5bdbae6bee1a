/** How routes come to the payment provider, and what is said where it fails. */
import type { Config } from "../../config/config.ts";
import type { Env } from "../../env.ts";
import { ApiError } from "../../errors.ts";
import { log } from "../../../shared/log.ts";
import type { Payments } from "../../integrations/payments/provider.ts";
import type { ApiContext } from "../route.ts";

/** Its library is loaded with the first request that needs it. */
export async function getPayments({ env, var: { config } }: ApiContext): Promise<Payments> {
  return loadPayments(env, config);
}

async function loadPayments(env: Env, config: Config): Promise<Payments> {
  const { openPayments } = await import("../../integrations/payments/provider.ts");
  return openPayments(env, config);
}

export async function callPayments<Value>(c: ApiContext, asked: Promise<Value>): Promise<Value> {
  try {
    return await asked;
  } catch (failure) {
    const { describePaymentFailure } = await import("../../integrations/payments/provider.ts");
    const { requestId } = c.var;
    log("error", "payments_failed", { requestId, cause: describePaymentFailure(failure) });
    const message = "The payment provider can't be reached right now. Try again in a moment.";
    throw new ApiError("unavailable", message, { cause: failure });
  }
}

export function billingNotConfigured(): ApiError {
  return new ApiError("billing_not_configured", "This server has no billing: every plan is given.");
}
